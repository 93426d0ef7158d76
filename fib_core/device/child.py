"""A forked process under supervision: ask it something, within a deadline and a memory limit. Torch-free.

In: messages. Out: replies, or a :class:`Death` that says how it ended. Passes no verdict.
"""

import os
import select
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from fib_core.device.channel import Channel, ChannelClosed
from fib_core.device.family import PROCESSES_MAX, family
from fib_core.device.faults import ZygoteDied
from fib_core.device.zygote_client import Zygote

_POLL_S = 0.05
_STALL_S = 5.0
_EXIT_S = 2.0
_LOG_BYTES = 64 * 1024


class Death(Exception):
    """The child will not answer any more. ``cause``: exit, signal, timeout, memory_limit or process_limit."""

    def __init__(self, cause: str, detail: str) -> None:
        self.cause, self.detail = cause, detail
        super().__init__(f"{cause}: {detail}")


class Child:
    """One referee or candidate."""

    def __init__(self, zygote: Zygote, role: str, options: dict[str, Any], memory_bytes: int | None = None) -> None:
        self._zygote, self._memory_bytes = zygote, memory_bytes
        self._channel, theirs = Channel.pair(_STALL_S)
        self._log_fd, log_write = os.pipe2(os.O_CLOEXEC)
        self._log = bytearray()
        self._fate: Death | None = None
        os.set_blocking(self._log_fd, False)
        try:
            self.pid = zygote.fork(role, theirs, log_write, options)
        finally:
            theirs.close()
            os.close(log_write)

    def ask(
        self, message: dict[str, Any], limit_s: float, fds: Sequence[int] = (), watched: "Child | None" = None
    ) -> tuple[dict[str, Any], list[int]]:
        """Reply and its descriptors; raises :class:`Death` (child and group are gone by then) or ``ZygoteDied``.

        ``watched`` is another child that works meanwhile: its output is drained, and if it grows beyond its memory it
        is ended, which its :attr:`fate` tells.
        """
        self.tell(message, fds)
        return self.reply(limit_s, watched)

    def tell(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send something whose reply, if there is one, is taken later."""
        try:
            self._channel.send(message, fds)
        except ChannelClosed as error:
            raise self._death_of(error) from error

    def reply(self, limit_s: float, watched: "Child | None" = None) -> tuple[dict[str, Any], list[int]]:
        """The next message from the child, as :meth:`ask` returns it."""
        try:
            self._await_reply(time.monotonic() + limit_s, limit_s, watched)
            return self._channel.receive()
        except ChannelClosed as error:
            raise self._death_of(error) from error

    def fate(self, cause: str = "") -> Death:
        """How this child ended; ends it if it has not, with ``cause`` (or because it stopped answering)."""
        if self._fate is None and cause:
            self._kill()
            self._fate = Death(cause, "no answer within the limit of the visit")
        return self._fate or self._death_of(ChannelClosed("the peer hung up"))

    def end(self) -> None:
        """Kill it if it lives, wait for its end, close what belongs to it."""
        try:
            self._kill()
        finally:
            self._release()

    def _release(self) -> None:
        self._drain()
        self._channel.close()
        if self._log_fd >= 0:
            os.close(self._log_fd)
            self._log_fd = -1

    @property
    def log(self) -> str:
        """First half and last half of what it printed, at most 64 KiB."""
        self._drain()
        return self._log.decode(errors="replace")

    def _await_reply(self, deadline: float, limit_s: float, watched: "Child | None") -> None:
        logs = {child._log_fd: child for child in (self, watched) if child is not None}
        poll = select.poll()
        for fd in (self._channel.fileno(), self._zygote.fileno(), *logs):
            poll.register(fd, select.POLLIN)
        next_look = time.monotonic() + _POLL_S
        while True:
            ready = {fd for fd, _ in poll.poll(_POLL_S * 1000)}
            for fd in [fd for fd in ready & logs.keys() if not logs[fd]._drain()]:
                poll.unregister(fd)
            if self._channel.fileno() in ready:
                return
            if self._zygote.fileno() in ready:
                self._zygote.pump()
            if time.monotonic() >= next_look:
                self._check_sizes(watched)
                next_look = time.monotonic() + _POLL_S
            if time.monotonic() > deadline:
                self._kill()
                raise Death("timeout", f"no answer within {limit_s:.3g} s")

    def _check_sizes(self, watched: "Child | None") -> None:
        self._check_size()
        if watched is not None and watched._fate is None:
            try:
                watched._check_size()
            except Death as death:
                watched._fate = death  # whoever talks to it will see it hang up

    def _death_of(self, error: ChannelClosed) -> Death:
        code = self._zygote.wait(self.pid, _EXIT_S / 2)
        if code is None:
            self._kill()
            return Death("exit", f"it stopped answering without ending ({error})")
        if code < 0:
            return Death("signal", f"killed by signal {-code}")
        return Death("exit", f"the process ended with exit code {code}")

    def _kill(self) -> None:
        try:
            self._zygote.kill(self.pid)
            self._zygote.wait(self.pid, _EXIT_S)
        except ZygoteDied:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)  # it died with its fork server; what it started did not
            raise

    def _check_size(self) -> None:
        if self._memory_bytes is None:
            return
        pids = family(self.pid)
        if len(pids) > PROCESSES_MAX:
            self._kill()
            raise Death("process_limit", f"more than {PROCESSES_MAX} processes")
        used = _used_bytes(pids)
        if used > self._memory_bytes:
            self._kill()
            raise Death("memory_limit", f"{used >> 20} MiB resident, {self._memory_bytes >> 20} MiB allowed")

    def _drain(self) -> bool:
        """Read what was printed; keep the head and the tail. False at the end of the stream."""
        with suppress(BlockingIOError):
            while self._log_fd >= 0:
                chunk = os.read(self._log_fd, _LOG_BYTES)
                if not chunk:
                    return False
                self._log += chunk
                if len(self._log) > _LOG_BYTES:
                    half = _LOG_BYTES // 2
                    self._log = self._log[:half] + self._log[-half:]
                if len(chunk) < _LOG_BYTES:
                    break  # a flood must not keep us from the deadline
        return True


def _used_bytes(pids: Sequence[int]) -> int:
    """Resident memory of a family; shared pages count once, as far as the kernel tells."""
    if len(pids) == 1:
        return _resident_bytes(pids[0])
    return sum(_proportional_bytes(pid) for pid in pids)


def _resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except FileNotFoundError:
        return 0
    except OSError:
        return _resident_bytes(pid)
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)

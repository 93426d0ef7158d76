"""The worker's side of the zygote: start it, have children forked, learn of their ends. Torch-free, no verdicts.

In: roles and sockets. Out: pids and exit codes (negative = signal). Raises :class:`ZygoteDied`.
"""

import os
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fib_core.device.channel import Channel, ChannelClosed
from fib_core.device.faults import ZygoteDied
from fib_core.device.integrity import NativeCode

_START_S = 180.0  # a cold torch import on a slow disk
_REPLY_S = 20.0
# Pools must not exist in a process that forks; the referee asks torch for its threads itself. PASSIVE: idle pool
# threads must sleep, not spin, while a contestant is timed. MALLOC: freed memory stays with the process, as under the
# allocators that servers run. Dask's nanny sets a trim threshold of 64 KiB: inherited, every call paid its page faults
# anew and a value-returning form measured 7 times too slow.
_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(16 << 20),
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE",
    "PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false",
}  # fmt: skip


def _inherited() -> dict[str, str]:
    """This process's environment without what signs an index: contestants inherit it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FIB_SIGNING_KEY")}


class Zygote:
    """A running fork server. Closing our end of the socket ends it and all its children."""

    def __init__(self, driver: Path, device: str = "cpu") -> None:
        self._control, theirs = Channel.pair(stall_s=_REPLY_S)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self._exits: dict[int, int] = {}
        command = [sys.executable, "-m", "fib_core.device.zygote", str(theirs.fileno()), str(driver), device]
        with theirs:
            self._process = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
                env=_inherited() | _ENVIRONMENT | {"TRITON_INTERPRET": "1" if device == "cpu" else "0"},
            )
        self.facts = self._expect("ready", _START_S)
        self.native_code = NativeCode(self.pid, driver)

    @property
    def pid(self) -> int:
        """For people and tests."""
        return int(self.facts["ready"])

    def fileno(self) -> int:
        """Readable when exits (or the zygote's own end) are to be learnt by :meth:`pump`."""
        return self._control.fileno()

    def alive(self) -> bool:
        """Is it there? Asked before each visit. Its warden may outlive it by a moment, a hung-up channel does not."""
        hung_up = select.poll()
        hung_up.register(self._control.fileno(), select.POLLRDHUP)
        return self._process.poll() is None and not hung_up.poll(0)

    def fork(self, role: str, channel: socket.socket, log_fd: int, options: dict[str, Any]) -> int:
        """Pid of a new child that converses on ``channel``; both descriptors stay open here."""
        self._tell({"command": "fork", "role": role, "options": options}, [channel.fileno(), log_fd])
        return int(self._expect("forked", _REPLY_S)["forked"])

    def kill(self, pid: int) -> None:
        """End a child and its process group; harmless if it is gone (the zygote knows, so no pid is ever reused)."""
        self._tell({"command": "kill", "pid": pid})

    def exit_code(self, pid: int) -> int | None:
        """How a child ended, if it has."""
        return self._exits.get(pid)

    def wait(self, pid: int, limit_s: float) -> int | None:
        """Exit code, waiting at most ``limit_s`` for each piece of news."""
        while pid not in self._exits and self._readable(limit_s):
            self.pump()
        return self._exits.get(pid)

    def pump(self) -> dict[str, Any]:
        """Take one message in; exits are remembered."""
        try:
            message, _ = self._control.receive()
        except ChannelClosed as error:
            raise ZygoteDied(f"the fork server is gone: {error}{self._last_words()}") from error
        if "exited" in message:
            self._exits[message["exited"]] = message["code"]
        return message

    def close(self) -> None:
        """Hang up and reap; its children die with it."""
        self._control.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _tell(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        try:
            self._control.send(message, fds or [])
        except ChannelClosed as error:
            raise ZygoteDied(f"the fork server is gone: {error}{self._last_words()}") from error

    def _expect(self, key: str, limit_s: float) -> dict[str, Any]:
        while self._readable(limit_s):
            message = self.pump()
            if key in message:
                return message
        raise ZygoteDied(f"the fork server said nothing for {limit_s:g} s{self._last_words()}")

    def _readable(self, limit_s: float) -> bool:
        poll = select.poll()
        poll.register(self._control.fileno(), select.POLLIN)
        return bool(poll.poll(limit_s * 1000))

    def _last_words(self) -> str:
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()
        return f"; its last words: {text[-2000:]}" if text else ""

"""The zygote: imports torch once, runs no operator, forks referees and candidates, reaps them. Single-threaded.

In: ``fork`` and ``kill`` commands on the control socket. Out: pids and exits. It ends when the worker's end of the
socket closes, and takes every child with it. It must never learn a seed, an input or a result.
"""

import gc
import importlib
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from fib_core.builders.toolchain import toolchain_name
from fib_core.device import sandbox
from fib_core.device.channel import Channel, ChannelClosed, close_all
from fib_core.device.driver_build import clock_beside
from fib_core.device.seal import seal

_PRELOAD = ("torch", "numpy", "scipy.special", "safetensors.torch", "triton", "triton.language")
_PRELOAD_ON_HOST = ("tvm_ffi",)  # asks at import whether there is a CUDA device, after which no fork can use it
_OURS = (
    "fib_core.device.referee", "fib_core.device.candidate", "fib_core.device.driver",
    "fib_core.builders.python", "fib_core.builders.cpp",
)  # fmt: skip


class Zygote:
    """The control loop; ``roles`` of living children by pid."""

    def __init__(self, control: Channel) -> None:
        self._control = control
        self._roles: dict[int, str] = {}
        self._wake_read, self._wake_write = socket.socketpair()
        for end in (self._wake_read, self._wake_write):
            end.setblocking(False)

    def serve(self) -> None:
        """Answer until the worker hangs up."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the worker's business
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)
        poll = select.poll()
        poll.register(self._control.fileno(), select.POLLIN)
        poll.register(self._wake_read.fileno(), select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake_read.fileno() in ready:
                self._wake_read.recv(4096)
                self._reap()
            if self._control.fileno() in ready:
                self._answer(*self._control.receive())

    def abandon(self) -> None:
        """Kill every child (their own death signals would do it too, but not for their process groups)."""
        for pid, role in list(self._roles.items()):
            self._kill(pid, role)
        _kill_strays(set())

    def _answer(self, message: dict[str, Any], fds: list[int]) -> None:
        pid = message.get("pid")
        if message["command"] == "kill" and pid in self._roles:
            self._kill(pid, self._roles[pid])
        if message["command"] == "fork":
            child = self._fork(message, fds)
            self._roles[child] = message["role"]
            self._control.send({"forked": child})
        close_all(fds)

    def _fork(self, message: dict[str, Any], fds: list[int]) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become(message, fds, parent)
        return pid

    def _become(self, message: dict[str, Any], fds: list[int], parent: int) -> NoReturn:
        code = 70
        try:
            sandbox.die_with_parent(parent)
            sandbox.default_signals()
            self._control.close()
            self._wake_read.close()
            self._wake_write.close()
            role = importlib.import_module(f"fib_core.device.{message['role']}")
            role.main(Channel.from_fd(fds[0]), fds[1], message["options"])
            code = 0
        except ChannelClosed:
            code = 0
        except BaseException:  # noqa: BLE001 (outermost loop of a forked child: nothing may unwind into the zygote)
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _reap(self) -> None:
        while True:
            # Look without reaping first: while the leader is a zombie its group id cannot be reused.
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            role = self._roles.pop(info.si_pid, None)
            if role == "candidate":
                self._kill(info.si_pid, role)
            _, status = os.waitpid(info.si_pid, 0)
            if role != "referee":  # a stray's own children arrive when it ends
                _kill_strays(set(self._roles))
            if role is not None:
                self._control.send({"exited": info.si_pid, "code": os.waitstatus_to_exitcode(status)})

    def _kill(self, pid: int, role: str) -> None:
        for kill in (os.killpg, os.kill) if role == "candidate" else (os.kill,):
            try:
                kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue  # before its setsid, or no longer anybody in the group


def _kill_strays(known: set[int]) -> None:
    """End adopted orphans: grandchildren that left the candidate's group."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    if children.exists():
        for pid in {int(text) for text in children.read_text().split()} - known:
            os.kill(pid, signal.SIGKILL)


def _leave_a_warden(control_fd: int) -> None:
    """Fork; the child returns. The parent waits for its end and ends what it leaves: nobody else would adopt that."""
    sandbox.adopt_orphans()
    warden = os.getpid()
    zygote = os.fork()
    if zygote == 0:
        sandbox.die_with_parent(warden)
        return
    os.close(control_fd)  # the worker must see the zygote hang up
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, status = os.waitpid(zygote, 0)
    with suppress(ChildProcessError):
        while True:
            _kill_strays(set())
            os.waitpid(-1, 0)  # whose children are adopted next
    os._exit(0 if status == 0 else 1)


def main() -> None:
    """Entry point of ``python -m fib_core.device.zygote FD DRIVER DEVICE``."""
    _leave_a_warden(int(sys.argv[1]))
    control = Channel.from_fd(int(sys.argv[1]))
    sandbox.adopt_orphans()
    sys.dont_write_bytecode = True
    wanted = _PRELOAD + (_PRELOAD_ON_HOST if sys.argv[3] == "cpu" else ())
    missing = [name for name in wanted if not _preload(name)]
    for name in _OURS:
        importlib.import_module(name)
    driver = Path(sys.argv[2])
    importlib.import_module("fib_core.device.driver").load(driver)  # before any contestant's code
    if sys.argv[3] != "cpu":
        importlib.import_module("fib_core.device.device_clock").find_functions(clock_beside(driver))
    # Nobody, the contestants' own native code included, can write over what measures (where the kernel offers that).
    sandbox.prepare()
    seal((driver.name, clock_beside(driver).name, "[vdso]", "libc.so.6"))
    toolchain_name()  # remembered, so that no candidate starts a compiler only to ask its version
    gc.collect()
    gc.freeze()
    threads = len(list(Path("/proc/self/task").iterdir()))
    zygote = Zygote(control)
    try:
        control.send({"ready": os.getpid(), "threads": threads, "missing": missing})
        zygote.serve()
    except ChannelClosed:
        zygote.abandon()


def _preload(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


if __name__ == "__main__":
    main()

"""What a confined candidate cannot do, and what it still can; each refusal beside the same act unconfined."""

import ctypes
import errno
import os
import resource
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import call, confined, free, needs_seccomp, refused, succeeds

from fib_core.device import linux

_PTRACE_SEIZE = 0x4206
_F_SETOWN = 8
_CAP_SYS_PTRACE, _CAP_SYS_ADMIN, _CAP_SYS_RESOURCE = 19, 21, 24


def signal_by_descriptor() -> None:
    signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)


def queue_signal() -> int:
    information = ctypes.create_string_buffer(struct.pack("iii", 0, 0, -1), 128)  # SI_QUEUE, signal 0: nothing is sent
    return call("rt_sigqueueinfo", os.getppid(), 0, ctypes.addressof(information))


def seize_parent() -> int:
    return call("ptrace", _PTRACE_SEIZE, os.getppid(), 0, 0)


BUFFER = ctypes.create_string_buffer(b"what only the parent may know", 64)


def read_parent_by_call() -> int:
    target = ctypes.create_string_buffer(64)
    local = struct.pack("PN", ctypes.addressof(target), 64)
    remote = struct.pack("PN", ctypes.addressof(BUFFER), 64)
    vectors = [ctypes.create_string_buffer(vector, 16) for vector in (local, remote)]
    return call("process_vm_readv", os.getppid(), ctypes.addressof(vectors[0]), 1, ctypes.addressof(vectors[1]), 1, 0)


def read_parent_by_file() -> bytes:
    with Path(f"/proc/{os.getppid()}/mem").open("rb", buffering=0) as memory:
        memory.seek(ctypes.addressof(BUFFER))
        return memory.read(8)


def take_descriptor() -> int:
    return call("pidfd_getfd", os.pidfd_open(os.getppid()), 2, 0)


def raise_limit() -> None:
    resource.prlimit(os.getppid(), resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))


ON_THE_PARENT: dict[str, Callable[[], Any]] = {
    "kill": lambda: os.kill(os.getppid(), 0),
    "kill_its_group": lambda: os.killpg(os.getpgid(os.getppid()), 0),
    "tgkill": lambda: call("tgkill", os.getppid(), os.getppid(), 0),
    "sigqueue": queue_signal,
    "pidfd_send_signal": signal_by_descriptor,
    "ptrace": seize_parent,
    "process_vm_readv": read_parent_by_call,
    "proc_mem": read_parent_by_file,
    "proc_environ": lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes()[:1],
    "proc_fd": lambda: Path(f"/proc/{os.getppid()}/fd/2").stat().st_dev,
    "pidfd_getfd": take_descriptor,
    "prlimit": raise_limit,
    "renice": lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid())),
}


TRACING = ("ptrace", "process_vm_readv", "proc_mem", "pidfd_getfd")
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


def holds(capability: int) -> bool:
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    return bool(int(effective.split()[1], 16) >> capability & 1)


def nobody_may(name: str) -> bool:
    """This host lets no process trace its parent without the right to trace anybody, confined or not."""
    closed = YAMA.exists() and int(YAMA.read_text()) > 0
    return name in TRACING and closed and not holds(_CAP_SYS_PTRACE)


@needs_seccomp
@pytest.mark.parametrize("name", ON_THE_PARENT)
def test_a_candidate_cannot_touch_its_parent(name: str) -> None:
    act = ON_THE_PARENT[name]
    assert nobody_may(name) or succeeds(free(act)), free(act)
    assert refused(confined(act)), confined(act)


@needs_seccomp
@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (socket.AF_INET, socket.SOCK_STREAM),
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_INET6, socket.SOCK_STREAM),
        (socket.AF_NETLINK, socket.SOCK_RAW),
    ],
)
def test_a_candidate_opens_no_socket_that_leaves_the_machine(family: int, kind: int) -> None:
    def act() -> bool:
        socket.socket(family, kind).close()
        return True

    if refused(free(act), errno.EAFNOSUPPORT):
        pytest.skip("this host has no such family")
    assert free(act) is True
    assert refused(confined(act))
    assert confined(act, network=True) is True, "the refusal is a choice"


def test_a_candidate_keeps_its_socket_pairs() -> None:
    def act() -> bytes:
        here, there = socket.socketpair()
        here.send(b"x")
        return there.recv(1)

    assert confined(act) == b"x"


def talk_to(server: str, kind: int = socket.SOCK_STREAM) -> bool:
    with socket.socket(socket.AF_UNIX, kind) as caller:
        if kind == socket.SOCK_DGRAM:
            return caller.sendto(b"x", server) == 1
        caller.connect(server)
        return True


@needs_seccomp
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_candidate_calls_no_service_of_this_machine(tmp_path: Path, kind: int) -> None:
    with socket.socket(socket.AF_UNIX, kind) as service:
        service.bind(str(tmp_path / "service"))
        if kind == socket.SOCK_STREAM:
            service.listen(8)
        assert free(lambda: talk_to(str(tmp_path / "service"), kind)) is True
        assert refused(confined(lambda: talk_to(str(tmp_path / "service"), kind)))
        assert confined(lambda: talk_to(str(tmp_path / "service"), kind), local_sockets=True) is True


@needs_seccomp
def test_a_candidate_reaches_no_abstract_socket_of_another_namespace() -> None:
    name = f"\0fib-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(name)
        service.listen(8)
        assert free(lambda: talk_to(name)) is True
        assert refused(confined(lambda: talk_to(name)))


def in_thread(act: Callable[[], set[int]]) -> set[int]:
    found: set[int] = set()
    thread = threading.Thread(target=lambda: found.update(act()))
    thread.start()
    thread.join()
    return found


@needs_seccomp
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core only")
def test_a_candidate_stays_on_its_core() -> None:
    core = min(os.sched_getaffinity(0))

    def widen() -> set[int]:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        return os.sched_getaffinity(0)

    assert len(free(widen)) > 1
    assert confined(widen, core=core) == {core}
    assert confined(lambda: in_thread(widen), core=core) == {core}


def test_a_candidate_is_left_without_privileges() -> None:
    # What this process holds depends on who runs it, and in which container: a root may lack either.
    for capability in (_CAP_SYS_PTRACE, _CAP_SYS_ADMIN):
        assert free(lambda capability=capability: holds(capability)) is holds(capability)
    assert confined(lambda: holds(_CAP_SYS_PTRACE) or holds(_CAP_SYS_ADMIN)) is False
    shown = ["sed", "-n", r"s/^CapEff:\s*0*\(.*\)$/\1/p", "/proc/self/status"]
    regained = confined(lambda: subprocess.run(shown, capture_output=True, text=True).stdout)
    assert regained.strip() in ("", "4"), "a program that it executes gains none either"


def test_a_candidate_cannot_raise_its_limits() -> None:
    def attempt() -> bool:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
        except (ValueError, OSError):
            return False
        return True

    assert free(attempt) is holds(_CAP_SYS_RESOURCE), "only this right raises a limit"
    assert confined(attempt) is False
    assert confined(lambda: resource.getrlimit(resource.RLIMIT_NOFILE))[1] <= 1024


@needs_seccomp
@pytest.mark.parametrize(
    "act",
    [
        lambda: linux.unshare(0x20000),
        lambda: linux.prctl(linux.PR_SET_TSC, 1),
        lambda: linux.prctl(linux.PR_SET_PDEATHSIG, 0),
        lambda: linux.prctl(linux.PR_SET_DUMPABLE, 0),
        lambda: call("fcntl", os.pipe()[0], _F_SETOWN, os.getppid()),
        lambda: call("shmget", 0, 4096, 0o1600) and 0,
        lambda: call("clone", 0x20000000 | int(signal.SIGCHLD), 0, 0, 0, 0) or os._exit(0),
    ],
    ids=["namespace", "cycle_counter", "survive_parent", "dumpable", "signal_by_owner", "lasting_memory", "clone_pid"],
)
def test_a_candidate_meddles_with_nothing_around_it(act: Callable[[], Any]) -> None:
    assert not holds(_CAP_SYS_ADMIN) or succeeds(free(act)), free(act)
    assert refused(confined(act))

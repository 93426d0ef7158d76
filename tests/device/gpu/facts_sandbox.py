"""Tries what could confine a candidate, before and after it has a CUDA context: which measures leave CUDA working.

Every trial runs in its own process, forked from one that has imported torch and not touched CUDA.
"""

import ctypes
import errno
import os
import resource
import struct
from collections.abc import Callable
from typing import Any

import torch
from forks import in_fork

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNET, _NEWUSER, _NEWIPC, _NEWNS = 0x40000000, 0x10000000, 0x08000000, 0x00020000
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_NO_NEW_PRIVS, _SET_SECCOMP, _DUMPABLE = 38, 22, 4
_GIB = 1 << 30
# System calls of x86-64 that a candidate needs for nothing, perhaps.
_DENIED = {
    "process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101, "execve": 59, "execveat": 322, "socket": 41,
    "kcmp": 312, "pidfd_open": 434, "fork": 57, "vfork": 58, "bpf": 321, "connect": 42, "clone3": 435, "mknod": 133,
}  # fmt: skip
_WRITES = 0b1111111111110010  # Landlock's rights but read_file, read_dir and execute


def work() -> float:
    """What candidates do on a device: allocate, launch, copy back, a new stream, a cuBLAS call."""
    x = torch.ones(1024, 1024, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        y = (x @ x).sum()
    torch.cuda.synchronize()
    torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    return float(y.item())


def check(code: int) -> None:
    """Raise what errno says."""
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, errno.errorcode.get(number, "?"))


def unshare(flags: int) -> Callable[[], None]:
    """New namespaces."""
    return lambda: check(_LIBC.unshare(flags))


def seccomp(denied: tuple[int, ...]) -> None:
    """Refuse these system calls with EPERM."""
    check(_LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    program = [(0x20, 0, 0, 0)]  # load the system call's number
    program += [(0x15, len(denied) - at, 0, number) for at, number in enumerate(denied)]
    program += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | errno.EPERM)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)))
    check(_LIBC.prctl(_SET_SECCOMP, 2, header, 0, 0))


def landlock() -> None:
    """Write nowhere but in /dev, /tmp and /proc/self; read everything."""
    attributes = struct.pack("Q", _WRITES)
    ruleset = _LIBC.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        check(ruleset)
    for place in ("/dev", "/tmp", "/proc/self"):
        fd = os.open(place, os.O_PATH)
        rule = struct.pack("=Qi", _WRITES, fd)
        check(_LIBC.syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0))
    check(_LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    check(_LIBC.syscall(_LANDLOCK_RESTRICT, ruleset, 0))


def address_space(gib: int) -> Callable[[], None]:
    """RLIMIT_AS at the present size plus so much."""

    def limit() -> None:
        with open("/proc/self/statm") as sizes:  # noqa: PTH123 (a kernel's table)
            now = int(sizes.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + gib * _GIB, now + gib * _GIB))

    return limit


def nobody() -> None:
    """Another user, without a way back."""
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


def processes() -> None:
    """No new processes or threads (root is exempt, so as nobody)."""
    nobody()
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


MEASURES: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "no_new_privs": lambda: check(_LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)),
    "not_dumpable": lambda: check(_LIBC.prctl(_DUMPABLE, 0, 0, 0, 0)),
    "seccomp": lambda: seccomp(tuple(_DENIED.values())),
    **{f"seccomp_{name}": lambda number=number: seccomp((number,)) for name, number in _DENIED.items()},  # type: ignore[misc]
    "landlock": landlock,
    "new_network": unshare(_NEWNET),
    "new_ipc": unshare(_NEWIPC),
    "new_mounts": unshare(_NEWNS),
    "new_user": unshare(_NEWUSER),
    "rlimit_as_4_gib": address_space(4),
    "rlimit_as_64_gib": address_space(64),
    "rlimit_as_1024_gib": address_space(1024),
    "rlimit_fsize_0": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    "rlimit_nofile_256": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)),
    "rlimit_core_0": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    "nobody": nobody,
    "nobody_no_processes": processes,
}


def _before(measure: Callable[[], Any]) -> float:
    measure()
    return work()


def _after(measure: Callable[[], Any]) -> float:
    work()
    measure()
    return work()


def _big_after_limit() -> float:
    work()
    address_space(4)()
    return float(torch.ones(16 << 30, dtype=torch.uint8, device="cuda")[-1].item())


def trials() -> dict[str, Any]:
    """Every measure before and after CUDA is there; ``1073741824.0`` is the right answer of the work."""
    facts: dict[str, Any] = {"uid": os.getuid(), "landlock_abi": _LIBC.syscall(_LANDLOCK_CREATE, None, 0, 1)}
    facts["rlimit_as_4_gib_then_16_gib_on_the_device"] = in_fork(_big_after_limit)
    for name, measure in MEASURES.items():
        facts[name] = {
            "before_cuda": in_fork(lambda m=measure: _before(m), 30),  # type: ignore[misc]
            "after_cuda": in_fork(lambda m=measure: _after(m), 30),  # type: ignore[misc]
        }
    return facts

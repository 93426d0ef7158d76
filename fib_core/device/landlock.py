"""Landlock: no write outside named places, no memory or signal of a process outside, no TCP, no abstract socket.

In: what may be written. Out: what this kernel's version put in force, or OSError. Reading and executing stay free.
It binds the calling thread and its descendants. Must not import torch.
"""

import ctypes
import os
import stat
import struct
from dataclasses import dataclass

from fib_core.device import linux
from fib_core.errors import DeviceError

# The same numbers on every machine but alpha.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_WRITE_FILE, _REMOVE, _TRUNCATE = 1 << 1, 1 << 4 | 1 << 5, 1 << 14
_MAKE_NODES, _MAKE_DEVICES = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12, 1 << 6 | 1 << 11
_REFER = 1 << 13
_TCP = 0b11
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_TRUNCATE_SINCE, _REFER_SINCE, _TCP_SINCE, _SCOPES_SINCE = 3, 2, 4, 6
_SINKS = ("/dev/null", "/dev/zero", "/dev/full")


@dataclass(frozen=True)
class Fence:
    """What is asked for. ``writable`` None: files stay free. ``own_threads``: write ``/proc/self/task``, where CUDA
    names its threads and gives up if it cannot; the process's memory can be written there too.
    """

    writable: tuple[str, ...] | None
    own_threads: bool = False
    network: bool = False
    local_sockets: bool = False


@dataclass(frozen=True)
class Enforced:
    """What is in force: the kernel's interface version, a fence around files, signals kept within the family."""

    abi: int
    files: bool
    signals_scoped: bool


def enforce(fence: Fence) -> Enforced:
    """Bind this thread and all it will start. Needs no-new-privileges. OSError where the kernel has no landlock."""
    abi = linux.syscall(_CREATE_RULESET, 0, 0, _ASK_VERSION)
    scoped = 0
    if abi >= _SCOPES_SINCE:
        scoped = _SIGNALS | (0 if fence.local_sockets or fence.network else _ABSTRACT_SOCKETS)
    tcp = _TCP if abi >= _TCP_SINCE and not fence.network else 0
    below, on_files = _rights(abi)
    ruleset = _create(below | _MAKE_DEVICES if fence.writable is not None else _MAKE_DEVICES, tcp, scoped)
    try:
        if fence.writable is not None:
            _grant_all(ruleset, fence, below, on_files)
        linux.syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return Enforced(abi, fence.writable is not None, bool(scoped & _SIGNALS))


def _rights(abi: int) -> tuple[int, int]:
    """Everything that writes, as far as this version knows it: below a directory, and on a file."""
    files = _WRITE_FILE | (_TRUNCATE if abi >= _TRUNCATE_SINCE else 0)
    return files | _REMOVE | _MAKE_NODES | (_REFER if abi >= _REFER_SINCE else 0), files


def _create(file_rights: int, tcp: int, scoped: int) -> int:
    """A ruleset's descriptor. A kernel that knows a shorter structure wants the rest to be zero, and it is."""
    attributes = ctypes.create_string_buffer(struct.pack("=QQQ", file_rights, tcp, scoped), 24)
    return linux.syscall(_CREATE_RULESET, ctypes.addressof(attributes), 24, 0)


def _grant_all(ruleset: int, fence: Fence, below: int, on_files: int) -> None:
    for name in fence.writable or ():
        os.close(_grant(ruleset, name, below))
    for name in _devices():
        os.close(_grant(ruleset, name, on_files))
    if fence.own_threads:
        # Stays open: a directory of /proc that nobody holds may come back as another one, without the grant.
        _grant(ruleset, "/proc/self/task", on_files)


def _grant(ruleset: int, name: str, rights: int) -> int:
    """Descriptor of the place."""
    try:
        place = os.open(name, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise DeviceError(f"{name} is to be writable for a candidate but does not exist; make it first") from error
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place), 12)
    linux.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.addressof(rule), 0)
    return place


def _devices() -> list[str]:
    """Sinks, and the files through which a CUDA process reaches its GPU (a directory holds nothing but such files)."""
    gpus = (f"/dev/{name}" for name in os.listdir("/dev") if name.startswith("nvidia"))  # noqa: PTH208 (no Path here)
    return [name for name in (*_SINKS, *gpus) if _is_device(name)]


def _is_device(name: str) -> bool:
    try:
        mode = os.stat(name).st_mode  # noqa: PTH116 (a few microseconds less between fork and work)
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISDIR(mode)

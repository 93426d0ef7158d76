"""Raw Linux calls that Python has no function for: any system call by number, prctl, capabilities.

In: numbers and addresses. Out: the kernel's answer, or OSError with its errno. It knows no policy. Must not import
torch.
"""

import ctypes
import os
import platform
from collections.abc import Collection

PR_SET_PDEATHSIG = 1
PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_TSC = 26
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_SET_SYSCALL_USER_DISPATCH = 59
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES_MAX = 64
CAP_DAC_READ_SEARCH = 2
_CAP_SYS_ADMIN = 21

MACHINE = platform.machine()
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def syscall(number: int, *arguments: int) -> int:
    """Call the kernel; every argument is a machine word. Raises OSError."""
    answer = _libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(word & (2**64 - 1)) for word in arguments))
    return _checked(int(answer))


def prctl(option: int, value: int = 0, more: int = 0) -> int:
    """``prctl`` with its unused arguments zero. Raises OSError."""
    return _checked(int(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(more), 0, 0)))


def unshare(flags: int) -> None:
    """Leave the namespaces named by ``flags``. Raises OSError."""
    _checked(int(_libc.unshare(ctypes.c_int(flags))))


def bound_capabilities(keep: Collection[int]) -> None:
    """Whatever this process and its descendants execute later gains no capability but ``keep``; they lose none now."""
    if _bounded():
        return
    for capability in range(_CAPABILITIES_MAX):
        if capability not in keep and not _drop_from_bound(capability):
            break


def drop_capabilities(keep: Collection[int]) -> None:
    """Give up every capability but ``keep``, for good. Raises OSError."""
    bound_capabilities(keep)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    held = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable of capabilities 0-31, then of 32-63
    _checked(int(_libc.capget(header, held)))
    kept = sum(1 << capability for capability in keep)
    for half in (0, 1):
        word = (kept >> 32 * half) & 0xFFFFFFFF
        permitted = held[3 * half + 1] & word
        held[3 * half : 3 * half + 3] = [permitted, permitted, 0]
    _checked(int(_libc.capset(header, held)))


def _bounded() -> bool:
    """Forked children of a bounded process need not ask forty times again."""
    return prctl(_PR_CAPBSET_READ, _CAP_SYS_ADMIN) == 0


def _drop_from_bound(capability: int) -> bool:
    """False past the last capability of this kernel, or without the right to change the bound."""
    try:
        return prctl(_PR_CAPBSET_DROP, capability) == 0
    except OSError:
        return False


def _checked(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer

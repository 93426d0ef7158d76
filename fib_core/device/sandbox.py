"""What a freshly forked child does to itself before anything else: session, parent-death signal, limits, core, log.

In: plain options. Out: nothing; the calling process is changed. Must not import torch (it runs between fork and work).
"""

import ctypes
import faulthandler
import os
import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_NOFILE = 1024
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class CandidateLimits:
    """What bounds a candidate from inside; the supervisor bounds it from outside as well."""

    core: int | None
    memory_bytes: int


def die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when ``parent`` dies; exits at once if that has happened already."""
    _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the reaper of every descendant whose parent dies, so that no daemonised grandchild escapes."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def hide_memory() -> None:
    """Let no process of the same user read this one's memory (a privileged user's still can)."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def default_signals() -> None:
    """Undo the zygote's signal handling in a child."""
    signal.set_wakeup_fd(-1)
    # tvm-ffi brings a SIGSEGV handler that reads debug information for seconds before the process may die.
    crashes = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, *crashes):
        signal.signal(number, signal.SIG_DFL)


def redirect_output(log_fd: int) -> None:
    """Send stdout and stderr to the captured log, stdin to nothing; crashes leave their stack in the log."""
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log_fd, 1), (log_fd, 2)):
        os.dup2(source, target)
    os.close(null)
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115 (fd 1 outlives us)
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115
    faulthandler.enable(file=2)


def confine(limits: CandidateLimits) -> None:
    """Pin to one core; bound address space (on top of what the fork inherited), descriptors and core dumps."""
    if limits.core is not None:
        os.sched_setaffinity(0, {limits.core})
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    space = pages * resource.getpagesize() + limits.memory_bytes
    for kind, value in ((resource.RLIMIT_AS, space), (resource.RLIMIT_NOFILE, _NOFILE), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))

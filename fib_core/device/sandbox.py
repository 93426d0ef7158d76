"""What a freshly forked child does to itself before anything else: session, parent-death signal, log, confinement.

In: plain options. Out: the calling process is changed; :func:`confine` says which means are in force. Must not import
torch (it runs between fork and work).
"""

import errno
import faulthandler
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fib_core.device import landlock, linux, seccomp, syscall_policy

_NOFILE = 1024
_CLONE_NEWNET = 0x40000000
_OF_A_THREAD = ("core_pin", "netns", "capabilities", "landlock", "landlock_processes")
# Reading is free in any case; a run by root from somebody's private home needs it to find its own modules.
_KEPT_CAPABILITIES = (linux.CAP_DAC_READ_SEARCH,)


@dataclass(frozen=True)
class CandidateLimits:
    """What bounds a candidate from inside; the supervisor bounds it from outside as well.

    ``writable``: directories it may write, everything else is read-only (None: no such fence). ``address_space``: bound
    virtual memory; CUDA cannot live with that, so False also lets it name its threads. ``network``: leave sockets
    alone. ``local_sockets``: it may call named sockets of this host.
    """

    core: int | None
    memory_bytes: int
    writable: tuple[str, ...] | None = ()
    address_space: bool = True
    network: bool = False
    local_sockets: bool = False


def die_with_parent(parent: int) -> None:
    """Ask the kernel for SIGKILL when ``parent`` dies; exits at once if that has happened already."""
    linux.prctl(linux.PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Become the reaper of every descendant whose parent dies, so that no daemonised grandchild escapes."""
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """Let no process of the same user read this one's memory (a privileged one still can). Forks inherit it."""
    linux.prctl(linux.PR_SET_DUMPABLE, 0)


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


def confine(limits: CandidateLimits) -> tuple[str, ...]:
    """Do to this process everything the host offers; returns the names of what is in force. Irreversible.

    The order matters: namespaces and pinning need rights that are given up next; the filter, last, refuses the rest.
    """
    alone = len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208 (no Path between fork and work)
    done = _bound(limits)
    with _means(done, "subreaper"):
        adopt_orphans()
    if not limits.network:
        with _means(done, "netns"):
            linux.unshare(_CLONE_NEWNET)
    with _means(done, "capabilities"):
        linux.drop_capabilities(_KEPT_CAPABILITIES)
    with _means(done, "no_new_privs"):
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    signals_scoped = _lock(limits, done)
    if not alone:  # these bind the calling thread only: true of the process only where there is no other
        done = [name for name in done if name.split(":")[0] not in _OF_A_THREAD]
    with _means(done, "seccomp"):
        _filter(limits, signals_scoped and alone)
    with _means(done, "hidden_memory"):
        if linux.prctl(linux.PR_GET_DUMPABLE) == 1:
            raise OSError(errno.ENODATA, "readable by its user")
    return tuple(done)


def _bound(limits: CandidateLimits) -> list[str]:
    """Core, address space (on top of what the fork inherited), file size, descriptors, core dumps."""
    done: list[str] = []
    if limits.core is not None:
        with _means(done, "core_pin"):
            os.sched_setaffinity(0, {limits.core})
    bounds = {"nofile": _NOFILE, "fsize": limits.memory_bytes, "core": 0, "msgqueue": 0}
    if limits.address_space:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        bounds["as"] = pages * resource.getpagesize() + limits.memory_bytes
    for name, value in bounds.items():
        with _means(done, f"rlimit_{name}"):
            _limit(getattr(resource, f"RLIMIT_{name.upper()}"), value)
    return done


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (bound, bound))


def _lock(limits: CandidateLimits, done: list[str]) -> bool:
    """Landlock; True where it keeps signals within the family."""
    with _means(done, ""):
        enforced = landlock.enforce(
            landlock.Fence(limits.writable, not limits.address_space, limits.network, limits.local_sockets)
        )
        done.append(f"landlock{'' if enforced.files else '_processes'}:abi{enforced.abi}")
        return enforced.signals_scoped
    return False


def _filter(limits: CandidateLimits, signals_scoped: bool) -> None:
    pid = os.getpid()
    group = (0, -pid) if os.getpgrp() == pid else ()
    seen = syscall_policy.Circumstances(
        None if signals_scoped else (pid, *group), limits.network, limits.local_sockets
    )
    seccomp.install(_program(seen))


@cache
def _program(seen: syscall_policy.Circumstances) -> bytes:
    try:
        return seccomp.packed(seccomp.assemble(syscall_policy.rules(seen), linux.MACHINE))
    except KeyError as error:
        raise OSError(errno.ENOSYS, f"no table of system calls for {linux.MACHINE}") from error


def prepare() -> None:
    """For whoever forks candidates, once: do what :func:`confine` would otherwise repeat in every child.

    Programs that the caller executes from here on are without privileges; the caller itself keeps its own.
    """
    with suppress(OSError):
        linux.bound_capabilities(_KEPT_CAPABILITIES)
    for local_sockets in (False, True):
        with suppress(OSError):
            _program(syscall_policy.Circumstances(None, network=False, local_sockets=local_sockets))


@contextmanager
def _means(done: list[str], name: str) -> Iterator[None]:
    """Whatever the host refuses is absent from the list and no reason to stop."""
    try:
        yield
    except OSError:
        return
    if name:
        done.append(name)

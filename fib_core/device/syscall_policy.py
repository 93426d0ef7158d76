"""Which system calls a candidate is refused, and why. Everything not named here stays allowed: threads, fork, exec,
executable memory, files (other means bound those).

In: what the host's other means cover. Out: rules. Must not import torch.
"""

import errno
from dataclasses import dataclass

from fib_core.device import linux
from fib_core.device.seccomp import Check, Rule

_AF_UNIX = 1
_SOCK_TYPE_MASK = 0xF
_SOCK_DGRAM = 2
_NEW_NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_CLONE_PARENT = 0x8000
_FCNTL_OWNERS = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: signals that the kernel sends on our behalf
_IOCTL_OWNERS = (0x8901, 0x8902, 0x5412)  # FIOSETOWN, SIOCSPGRP; TIOCSTI types into a terminal

_OTHERS_MEMORY = (
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise", "process_mrelease",
    "migrate_pages", "move_pages",
)  # fmt: skip
# A candidate that leaves its core, or slows its referee, bends the clock it is measured with.
_SCHEDULING = ("setpriority", "ioprio_set")
_MACHINE = (
    "setns", "unshare", "chroot", "mount", "umount2", "pivot_root", "open_tree", "open_tree_attr", "move_mount",
    "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "swapon", "swapoff", "quotactl", "quotactl_fd", "acct",
    "reboot", "sethostname", "setdomainname", "vhangup", "syslog", "init_module", "finit_module", "delete_module",
    "kexec_load", "kexec_file_load", "iopl", "ioperm", "modify_ldt", "open_by_handle_at", "fanotify_init", "bpf",
    "perf_event_open", "userfaultfd", "clock_settime", "settimeofday", "adjtimex", "clock_adjtime",
)  # fmt: skip
# What one candidate could leave behind for the next.
_LASTING = ("shmget", "semget", "msgget", "mq_open", "add_key", "request_key", "keyctl")
# Landlock bounds what is written, not to whom a file belongs.
_FILE_RIGHTS = (
    "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown", "fchownat", "setxattr", "lsetxattr",
    "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat",
)  # fmt: skip
# A second filter, or a handler for system calls or for the cycle counter, would stand between the driver and its clock.
_OWN_FILTERS = (
    linux.PR_SET_SECCOMP, linux.PR_SET_SYSCALL_USER_DISPATCH, linux.PR_SET_TSC, linux.PR_SET_DUMPABLE,
    linux.PR_SET_PDEATHSIG, linux.PR_SET_CHILD_SUBREAPER,
)  # fmt: skip


@dataclass(frozen=True)
class Circumstances:
    """What the rules depend on. ``signals_to``: the only targets of signals, None where landlock sees to them."""

    signals_to: tuple[int, ...] | None
    network: bool
    local_sockets: bool


def rules(seen: Circumstances) -> tuple[Rule, ...]:
    """What to refuse."""
    refused = (*_OTHERS_MEMORY, *_SCHEDULING, *_MACHINE, *_LASTING, *_FILE_RIGHTS)
    return (
        *(Rule(name) for name in (*refused, "pidfd_send_signal", "seccomp")),
        # Answers "done" and does nothing, as a cpuset would: told to bind its threads, OpenMP dies of a refusal.
        Rule("sched_setaffinity", error=0),
        *_on_processes(),
        *(() if seen.signals_to is None else _on_signals(seen.signals_to)),
        *_on_sockets(seen.network, seen.local_sockets),
    )


def _on_processes() -> tuple[Rule, ...]:
    itself = (Check(0, (0,)),)
    return (
        *(Rule(name, itself) for name in ("prlimit64", "sched_setscheduler", "sched_setparam", "sched_setattr")),
        Rule("prctl", (Check(0, _OWN_FILTERS, member=False),)),
        Rule("clone", (Check(0, (0,), mask=_NEW_NAMESPACES | _CLONE_PARENT),)),
        # Its flags lie behind a pointer, which no filter follows; the C library falls back to clone.
        Rule("clone3", error=errno.ENOSYS),
        Rule("fcntl", (Check(1, _FCNTL_OWNERS, member=False),)),
        Rule("ioctl", (Check(1, _IOCTL_OWNERS, member=False),)),
    )


def _on_signals(targets: tuple[int, ...]) -> tuple[Rule, ...]:
    """A filter cannot know the candidate's children, nor its threads (``tkill``); threads of its own pid it can."""
    own = (Check(0, targets[:1]),)
    names = ("tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
    return (Rule("kill", (Check(0, targets),)), *(Rule(name, own) for name in names))


def _on_sockets(network: bool, local_sockets: bool) -> tuple[Rule, ...]:
    rings = tuple(Rule(f"io_uring_{verb}", error=errno.ENOSYS) for verb in ("setup", "enter", "register"))
    if network:
        return rings
    unix = Check(0, (_AF_UNIX,))
    if local_sockets:
        return (*rings, Rule("socket", (unix,)))
    # Services of the machine listen on named sockets; a datagram socket reaches them without connecting.
    stream = Check(1, (_SOCK_DGRAM,), mask=_SOCK_TYPE_MASK, member=False)
    return (*rings, Rule("socket", (unix, stream)), Rule("socketpair", (unix, stream)), Rule("connect"))

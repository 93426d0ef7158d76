"""What confinement says of itself: the list names what is in force and nothing else, on hosts that offer less too."""

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forked import HOST, LIMITS, confined, free, in_force, needs_landlock, needs_seccomp, refused

from fib_core.device import linux, sandbox
from fib_core.errors import DeviceError


def unavailable(*_: Any) -> int:
    raise OSError(errno.ENOSYS, "this kernel has no such call")


def test_limits_and_no_new_privileges_are_in_force_on_every_host() -> None:
    assert {"rlimit_as", "rlimit_nofile", "rlimit_core", "no_new_privs"} <= set(HOST)
    assert len(HOST) == len(set(HOST))
    assert confined(lambda: "NoNewPrivs:\t1" in Path("/proc/self/status").read_text()) is True
    assert free(lambda: "NoNewPrivs:\t1" in Path("/proc/self/status").read_text()) is False


@needs_seccomp
def test_a_filter_named_is_a_filter_in_force() -> None:
    assert confined(lambda: "Seccomp:\t2" in Path("/proc/self/status").read_text()) is True
    assert free(lambda: "Seccomp:\t2" in Path("/proc/self/status").read_text()) is False


def test_a_network_namespace_named_is_another_one() -> None:
    ours = Path("/proc/self/ns/net").readlink()
    theirs = confined(lambda: Path("/proc/self/ns/net").readlink())
    assert (theirs != ours) is ("netns" in HOST)
    assert free(lambda: Path("/proc/self/ns/net").readlink()) == ours
    assert confined(lambda: Path("/proc/self/ns/net").readlink(), network=True) == ours


def test_address_space_is_bounded_only_on_demand() -> None:
    def reserve() -> bool:
        try:
            linux.syscall({"x86_64": 9, "aarch64": 222}[linux.MACHINE], 0, 64 << 30, 0, 0x22, -1, 0)
        except OSError:
            return False
        return True

    assert confined(reserve, memory_bytes=1 << 30) is False
    assert confined(reserve, memory_bytes=1 << 30, address_space=False) is True
    assert "rlimit_as" not in in_force(replace(LIMITS, address_space=False))


def test_a_core_is_named_only_when_one_was_given() -> None:
    assert "core_pin" not in HOST
    assert "core_pin" in in_force(replace(LIMITS, core=min(os.sched_getaffinity(0))))


@needs_landlock
def test_without_a_scratch_files_are_free_and_the_list_says_so(tmp_path: Path) -> None:
    names = in_force(replace(LIMITS, writable=None))
    assert not any(name.startswith("landlock:") for name in names)
    assert any(name.startswith("landlock_processes:") for name in names)


@needs_landlock
def test_a_missing_scratch_is_the_machines_fault(tmp_path: Path) -> None:
    def attempt() -> str:
        try:
            sandbox.confine(replace(LIMITS, writable=(str(tmp_path / "absent"),)))
        except DeviceError as error:
            return str(error)
        return "accepted"

    assert "make it first" in free(attempt)


@pytest.mark.parametrize(
    ("wrapper", "absent"),
    [
        ("syscall", ("landlock",)),
        ("unshare", ("netns",)),
        ("drop_capabilities", ("capabilities",)),
        ("prctl", ("no_new_privs", "subreaper", "hidden_memory")),
    ],
)
def test_what_a_host_lacks_is_absent_and_nothing_crashes(
    monkeypatch: pytest.MonkeyPatch, wrapper: str, absent: tuple[str, ...]
) -> None:
    monkeypatch.setattr(linux, wrapper, unavailable)
    names = in_force(LIMITS)
    assert isinstance(names, tuple)
    assert not [name for name in names if name.startswith(absent)]
    assert "rlimit_nofile" in names


def test_neither_filter_nor_lock_leaves_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_privileges(option: int, value: int = 0, more: int = 0) -> int:
        return unavailable() if option == linux.PR_SET_SECCOMP else real(option, value, more)

    real: Callable[..., int] = linux.prctl
    monkeypatch.setattr(linux, "syscall", unavailable)
    monkeypatch.setattr(linux, "prctl", only_privileges)
    names = in_force(LIMITS)
    assert "no_new_privs" in names
    assert not [name for name in names if name.startswith(("seccomp", "landlock"))]


@needs_seccomp
def test_an_old_kernel_gets_its_filter_through_prctl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "syscall", unavailable)
    names = in_force(LIMITS)
    assert "seccomp" in names
    assert not any("landlock" in name for name in names)
    assert refused(confined(lambda: os.kill(os.getppid(), 0))), "the filter takes over what landlock would scope"
    assert confined(lambda: os.kill(os.getpid(), 0)) is None
    assert free(lambda: os.kill(os.getppid(), 0)) is None


def test_an_unknown_machine_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "MACHINE", "riscv64")
    assert "seccomp" not in in_force(LIMITS)


def test_with_other_threads_only_what_binds_them_all_is_named() -> None:
    def crowded() -> tuple[str, ...]:
        leave = threading.Event()
        threading.Thread(target=leave.wait, daemon=True).start()
        return sandbox.confine(LIMITS)

    names = free(crowded)
    assert not [name for name in names if name.startswith(("landlock", "netns", "capabilities"))]
    assert "rlimit_nofile" in names
    assert ("seccomp" in names) is ("seccomp" in HOST)


def test_hidden_memory_is_named_where_the_parent_hid_it() -> None:
    def hidden() -> tuple[str, ...]:
        sandbox.hide_memory()
        return sandbox.confine(LIMITS)

    assert "hidden_memory" not in HOST
    assert "hidden_memory" in free(hidden)


def test_preparing_costs_the_caller_no_privilege() -> None:
    def kept() -> bool:
        before = Path("/proc/self/status").read_text().partition("CapEff")[2].splitlines()[0]
        sandbox.prepare()
        return Path("/proc/self/status").read_text().partition("CapEff")[2].splitlines()[0] == before

    assert free(kept) is True

"""Runs one act in a forked child, confined or not, and tells how it went. For tests of confinement."""

import errno
import faulthandler
import os
import pickle
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fib_core.device import linux
from fib_core.device.sandbox import CandidateLimits, confine
from fib_core.device.syscall_numbers import number_of

LIMITS = CandidateLimits(core=None, memory_bytes=4 << 30)


def free(act: Callable[[], Any]) -> Any:
    """The control: what the act gives, or the exception it raises, in a child that is not confined."""
    return _forked(act)


def confined(act: Callable[[], Any], *scratch: Path, **limits: Any) -> Any:
    """The same act in a confined child that may write below ``scratch``."""
    bounds = replace(LIMITS, writable=tuple(str(place) for place in scratch), **limits)

    def both() -> Any:
        confine(bounds)
        return act()

    return _forked(both)


def in_force(limits: CandidateLimits) -> tuple[str, ...]:
    """What a child says of its own confinement."""
    found = _forked(lambda: confine(limits))
    assert isinstance(found, tuple), found
    return found


def _forked(act: Callable[[], Any]) -> Any:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _tell(act, write)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        told = answer.read()
    _, status = os.waitpid(pid, 0)
    if not told:
        return f"ended with {os.waitstatus_to_exitcode(status)}"
    return pickle.loads(told)  # noqa: S301 (our own child wrote it)


def _tell(act: Callable[[], Any], write: int) -> None:
    faulthandler.disable()  # a crash is an answer here, not a report
    try:
        os.setsid()
        try:
            told = act()
        except Exception as error:
            told = error if isinstance(error, OSError) else "".join(traceback.format_exception(error))
        os.write(write, pickle.dumps(told))
    finally:
        os._exit(0)


def refused(outcome: Any, *codes: int) -> bool:
    """The kernel said no, with one of ``codes`` (not permitted, access denied)."""
    return isinstance(outcome, OSError) and outcome.errno in (codes or (errno.EPERM, errno.EACCES))


def succeeds(outcome: Any) -> bool:
    """Neither an exception nor an end."""
    return not isinstance(outcome, Exception | str)


def call(name: str, *words: int) -> int:
    """A system call by name."""
    number = number_of(name, linux.MACHINE)
    assert number is not None
    return linux.syscall(number, *words)


HOST = in_force(LIMITS)
needs_seccomp = pytest.mark.skipif("seccomp" not in HOST, reason="this host offers no system-call filter")
needs_landlock = pytest.mark.skipif(not any("landlock" in name for name in HOST), reason="this host has no landlock")

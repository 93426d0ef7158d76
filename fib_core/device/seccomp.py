"""A system-call filter as a classic BPF program: assembled here, installed for every thread of the process.

In: rules. Out: a filter in force, or OSError. Which calls are refused is :mod:`fib_core.device.syscall_policy`'s
business. Must not import torch.
"""

import ctypes
import errno
import struct
from collections.abc import Iterable
from dataclasses import dataclass

from fib_core.device import linux
from fib_core.device.syscall_numbers import number_of

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP, _IF_EQUAL, _IF_AT_LEAST = 0x05, 0x15, 0x35
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_SET_MODE_FILTER = 1
_TSYNC, _SPEC_ALLOW = 1, 4
_MODE_FILTER = 2
_INT = 0xFFFFFFFF

Instruction = tuple[int, int, int, int]
"""Operation, jump if true, jump if false, operand."""


@dataclass(frozen=True)
class Check:
    """One argument, as the kernel sees an int: ``argument & mask`` is one of ``values``, or (``member=False``) none."""

    argument: int
    values: tuple[int, ...]
    mask: int = _INT
    member: bool = True


@dataclass(frozen=True)
class Rule:
    """One system call: refused with ``error`` unless it has checks and all of them hold."""

    name: str
    checks: tuple[Check, ...] = ()
    error: int = errno.EPERM


def assemble(rules: Iterable[Rule], machine: str) -> tuple[Instruction, ...]:
    """The program: foreign architectures die, ruled calls are checked, everything else is allowed."""
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":  # x32 calls share the architecture and would pass every comparison below
        program += [(_IF_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, KILL_PROCESS)]
    for rule in rules:
        number = number_of(rule.name, machine)
        if number is not None:
            block = _block(rule)
            program += [(_IF_EQUAL, 0, len(block), number), *block]
    return (*program, (_RETURN, 0, 0, ALLOW))


def packed(program: Iterable[Instruction]) -> bytes:
    """As the kernel reads it."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def install(code: bytes) -> None:
    """Filter every thread of this process and all its descendants from here on. Needs no-new-privileges. OSError."""
    body = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(body)))
    number = number_of("seccomp", linux.MACHINE)
    assert number is not None, linux.MACHINE
    # Without SPEC_ALLOW older kernels answer a filter with slower memory, which every timing would show.
    for flags in (_TSYNC | _SPEC_ALLOW, _TSYNC):
        try:
            refused_thread = linux.syscall(number, _SET_MODE_FILTER, flags, ctypes.addressof(header))
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS):
                raise
        else:
            if refused_thread:
                raise OSError(errno.ESRCH, f"thread {refused_thread} has a filter of its own")
            return
    linux.prctl(linux.PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(header))


def _block(rule: Rule) -> list[Instruction]:
    """Checks in order; the last two instructions allow and refuse. Every path ends in one of them."""
    refuse = (_RETURN, 0, 0, _ERRNO | rule.error)
    if not rule.checks:
        return [refuse]
    block: list[Instruction] = [(_RETURN, 0, 0, ALLOW), refuse]
    for check in reversed(rule.checks):
        block = [*_test(check, len(block)), *block]
    return block


def _test(check: Check, behind: int) -> list[Instruction]:
    """``behind`` instructions follow the test; the very last of them refuses, the first goes on."""
    begin = [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * check.argument)]  # low word: both machines are little-endian
    if check.mask != _INT:
        begin.append((_AND, 0, 0, check.mask))
    left = range(len(check.values) - 1, -1, -1)  # comparisons that follow each one
    if check.member:
        tests = [(_IF_EQUAL, after + 1, 0, value & _INT) for after, value in zip(left, check.values, strict=True)]
        return [*begin, *tests, (_JUMP, 0, 0, behind - 1)]
    tests = [(_IF_EQUAL, after + behind - 1, 0, value & _INT) for after, value in zip(left, check.values, strict=True)]
    return [*begin, *tests]

"""The filter program does what its rules say: run by an interpreter of our own against a plain reading of the rules."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.device import seccomp, syscall_policy
from fib_core.device.seccomp import ALLOW, KILL_PROCESS, Check, Rule
from fib_core.device.syscall_numbers import X86_64_AND_AARCH64, number_of

MACHINES = ("x86_64", "aarch64")
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CIRCUMSTANCES = st.builds(
    syscall_policy.Circumstances,
    signals_to=st.one_of(st.none(), st.just((700,)), st.just((700, 0, -700))),
    network=st.booleans(),
    local_sockets=st.booleans(),
)


def verdict(program: tuple[seccomp.Instruction, ...], architecture: int, number: int, words: tuple[int, ...]) -> int:
    data = {0: number & 0xFFFFFFFF, 4: architecture} | {16 + 8 * i: word & 0xFFFFFFFF for i, word in enumerate(words)}
    accumulator, at = 0, 0
    while True:
        operation, if_true, if_false, operand = program[at]
        at += 1
        if operation == 0x06:
            return operand
        if operation == 0x20:
            accumulator = data[operand]
        elif operation == 0x54:
            accumulator &= operand
        elif operation == 0x05:
            at += operand
        else:
            holds = accumulator == operand if operation == 0x15 else accumulator >= operand
            at += if_true if holds else if_false


def expected(rule: Rule, words: tuple[int, ...]) -> int:
    for check in rule.checks:
        word = words[check.argument] & check.mask & 0xFFFFFFFF
        if (word in {value & 0xFFFFFFFF for value in check.values}) != check.member:
            return 0x00050000 | rule.error
    return ALLOW if rule.checks else 0x00050000 | rule.error


WORDS = st.sampled_from([0, 1, 2, 3, 8, 10, 700, -700, -1, 0x10000000, 0x8901, 0x80002, 2**31, 2**40 + 1, 2**63])
CHECKS = st.builds(
    Check,
    argument=st.integers(0, 5),
    values=st.lists(WORDS, min_size=1, max_size=4).map(tuple),
    mask=st.sampled_from([0xFFFFFFFF, 0xF, 0x7E028000]),
    member=st.booleans(),
)
RULES = st.lists(
    st.builds(
        Rule,
        name=st.sampled_from(["kill", "socket", "prctl", "connect", "iopl"]),
        checks=st.lists(CHECKS, max_size=3).map(tuple),
        error=st.sampled_from([errno.EPERM, errno.ENOSYS]),
    ),
    max_size=5,
    unique_by=lambda rule: rule.name,
)


@given(RULES, st.sampled_from(MACHINES), st.tuples(*[WORDS] * 6))
def test_the_program_says_what_the_rules_say(rules: list[Rule], machine: str, words: tuple[int, ...]) -> None:
    program = seccomp.assemble(rules, machine)
    for rule in rules:
        number = number_of(rule.name, machine)
        if number is not None:
            assert verdict(program, ARCHITECTURE[machine], number, words) == expected(rule, words)
    assert verdict(program, ARCHITECTURE[machine], 0, words) == ALLOW, "a call without a rule"


@given(CIRCUMSTANCES, st.sampled_from(MACHINES), st.sampled_from(sorted(X86_64_AND_AARCH64)))
def test_another_architecture_dies_whatever_it_asks(
    seen: syscall_policy.Circumstances, machine: str, name: str
) -> None:
    program = seccomp.assemble(syscall_policy.rules(seen), machine)
    number = number_of(name, "x86_64") or 0
    assert verdict(program, 0x40000003, number, (0,) * 6) == KILL_PROCESS
    if machine == "x86_64":
        assert verdict(program, ARCHITECTURE[machine], number | 0x40000000, (0,) * 6) == KILL_PROCESS


@given(CIRCUMSTANCES, st.sampled_from(MACHINES))
def test_every_jump_lands_inside_the_program(seen: syscall_policy.Circumstances, machine: str) -> None:
    program = seccomp.assemble(syscall_policy.rules(seen), machine)
    assert len(program) <= 4096
    assert len(seccomp.packed(program)) == 8 * len(program)
    for at, (operation, if_true, if_false, operand) in enumerate(program):
        assert max(if_true, if_false) <= 255
        reach = operand if operation == 0x05 else max(if_true, if_false)
        assert at + 1 + reach < len(program) or operation == 0x06


@given(CIRCUMSTANCES)
def test_no_call_is_ruled_twice(seen: syscall_policy.Circumstances) -> None:
    names = [rule.name for rule in syscall_policy.rules(seen)]
    assert len(names) == len(set(names)), "the second rule would never be asked"


@pytest.mark.parametrize("machine", MACHINES)
def test_no_two_calls_share_a_number(machine: str) -> None:
    numbers = [number_of(name, machine) for name in X86_64_AND_AARCH64]
    known = [number for number in numbers if number is not None]
    assert len(known) == len(set(known))
    assert number_of("ptrace", "riscv64") is None


@pytest.mark.parametrize("network", [False, True])
def test_threads_forks_and_files_are_allowed(network: bool) -> None:
    seen = syscall_policy.Circumstances((700, 0, -700), network, local_sockets=False)
    program = seccomp.assemble(syscall_policy.rules(seen), "x86_64")
    thread = 0x3D0F00  # what the C library asks of clone for a thread
    for number, words in {56: (thread,), 57: (), 59: (), 257: (), 10: (0, 4096, 7), 62: (700, 9), 72: (3, 4)}.items():
        padded = (*words, *(0,) * (6 - len(words)))
        assert verdict(program, ARCHITECTURE["x86_64"], number, padded) == ALLOW
    assert verdict(program, ARCHITECTURE["x86_64"], 62, (701, 9, 0, 0, 0, 0)) != ALLOW

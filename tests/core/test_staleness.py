"""Staleness: each entry is asked alone; majors count, minors do not; what is not known makes nothing stale."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.index.evidence import Question
from fib_core.index.staleness import POLICY_VERSION, Present, entry_reasons, key_reasons, major
from schemas.canonical import digest_of
from schemas.index import IndexEntry
from tests.core.test_dispatch import PROMOTED, build

ENTRY: IndexEntry = build().definitions[0].entries[0]
MEASURED = ENTRY.evidence[0].model_copy(
    update={"library_versions": {"torch": "2.13.0+cpu", "apache-tvm-ffi": "0.1.15"}, "drivers": ("570.86.15",)}
)
FRESH = ENTRY.model_copy(update={"evidence": (MEASURED,)})
HERE = {"torch": "2.13.0+cpu", "apache-tvm-ffi": "0.1.15"}


def causes(present: Present, entry: IndexEntry = FRESH) -> set[str]:
    return {item.cause for item in entry_reasons(entry, present, {})}


@pytest.mark.parametrize(
    ("version", "expected"),
    [("2.13.0+cpu", "2"), ("2", "2"), ("3.7.1", "3"), ("0.1.15", "0.1"), ("0.2", "0.2"), ("570.86.15", "570")],
)
def test_the_major_of_a_version(version: str, expected: str) -> None:
    assert major(version) == expected


STALE = {
    "library": Present(libraries=HERE | {"torch": "3.0.0"}),
    "driver": Present(driver="580.10"),
    "policy": Present(policy_version=POLICY_VERSION + 1),
    "definition": Present(definitions={digest_of("another")}),
    "solution": Present(solutions={digest_of("other bytes")}),
}


@pytest.mark.parametrize("cause", STALE)
def test_each_change_makes_the_entry_stale_for_its_own_reason(cause: str) -> None:
    assert causes(STALE[cause]) == {cause}


def test_a_rule_with_other_numbers_is_another_policy() -> None:
    assert causes(Present(rules=digest_of("other numbers"))) == {"policy"}
    assert causes(Present(rules=MEASURED.policy.rules)) == set()


def test_a_minor_update_and_what_is_unknown_or_absent_make_nothing_stale() -> None:
    same = Present(
        libraries={"torch": "2.99.1", "apache-tvm-ffi": "0.1.99", "never-heard-of": "9"}, driver="570.200",
        policy_version=POLICY_VERSION, definitions={FRESH.box.definition_digest}, solutions={FRESH.solution_digest},
    )  # fmt: skip
    assert causes(same) == set()
    assert causes(Present()) == set()


def test_a_zero_version_breaks_with_its_second_figure() -> None:
    assert causes(Present(libraries={"apache-tvm-ffi": "0.2.0"})) == {"library"}


def test_one_stale_key_makes_its_entry_stale_and_every_reason_is_said_once() -> None:
    old = MEASURED.model_copy(update={"key": "other", "library_versions": {"torch": "1.9"}})
    both = FRESH.model_copy(update={"evidence": (MEASURED, old)})
    assert causes(Present(libraries=HERE), both) == {"library"}
    assert key_reasons(MEASURED, Present(libraries=HERE)) == ()
    twice = FRESH.model_copy(update={"evidence": (old, old.model_copy(update={"key": "third"}))})
    assert len(entry_reasons(twice, Present(libraries=HERE), {})) == 1


def test_an_entry_of_the_first_version_is_judged_by_the_libraries_of_its_index() -> None:
    old = ENTRY.model_copy(update={"evidence": ()})
    present = Present(libraries=HERE, driver="1.0", policy_version=9)
    assert entry_reasons(old, present, {"torch": "2.1"}) == ()
    assert [item.cause for item in entry_reasons(old, present, {"torch": "1.9"})] == ["library"]


@given(st.permutations(range(3)))
def test_staleness_of_one_entry_never_depends_on_the_others(order: list[int]) -> None:
    versions = ["2.13.0", "1.9", "2.0"]
    entries = [
        FRESH.model_copy(update={"evidence": (MEASURED.model_copy(update={"library_versions": {"torch": one}}),)})
        for one in versions
    ]
    found = {place: bool(causes(Present(libraries=HERE), entries[place])) for place in order}
    assert found == {0: False, 1: True, 2: False}


def test_a_question_is_the_same_in_any_order_and_another_with_any_other_part() -> None:
    asked = Question.of(PROMOTED[0])
    assert asked._replace(workloads=asked.workloads[::-1]).digest == asked.digest
    others = [
        asked._replace(definition=digest_of(1)), asked._replace(key="M=1024"), asked._replace(device_class="x"),
        asked._replace(profile="full"), asked._replace(incumbent=None), asked._replace(forms=(digest_of(2),)),
        asked._replace(finalists=()), asked._replace(workloads=asked.workloads[1:]),
    ]  # fmt: skip
    assert len({asked.digest, *(item.digest for item in others)}) == len(others) + 1

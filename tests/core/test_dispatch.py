"""Dispatch: every key reachable, none shadowed, the incumbent everywhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core import dispatch
from fib_core.errors import ContractError
from fib_core.lookup import check, find, overlap
from fib_core.runtime.table import Table
from schemas.decision import KeyBox
from schemas.index import DispatchIndex
from tests.core.road import Walked, walk
from tests.core.world import DEVICE, World, gemm, solution

DEFINITION = gemm()
WALKED: Walked = walk(World({"old": 1.0, "fast": 0.5}), [solution("fast", DEFINITION)])


def build(walked: Walked = WALKED, decisions=None) -> DispatchIndex:
    chosen = walked.decisions if decisions is None else decisions
    return dispatch.build(walked.snapshot, chosen, walked.solutions, "quick", DEVICE, {"b": "1"})


def test_every_decision_becomes_an_entry_with_its_evidence() -> None:
    (block,) = build().definitions
    by_digest = {decision.digest: decision for decision in WALKED.decisions}
    assert {entry.decision_digest for entry in block.entries} == set(by_digest)
    for entry in block.entries:
        decision = by_digest[entry.decision_digest]
        assert entry.solution_digest == decision.solution_digest
        assert (entry.ratio is None) == (decision.verdict != "promoted")
        assert entry.reason == decision.reason


def test_only_chosen_solutions_are_listed_with_their_place_in_the_store() -> None:
    (listed,) = build().solutions
    assert listed.name == "fast"
    assert listed.object_key == f"solutions/{listed.solution_digest[7:]}.json"


@given(st.integers(0, 200))
def test_a_call_is_served_by_the_one_box_that_covers_it_or_by_none(size: int) -> None:
    index = build()
    covering = [entry for entry in index.definitions[0].entries if entry.box.covers({"M": size})]
    assert len(covering) <= 1
    assert find(index, DEFINITION.digest, {"M": size}) == (covering[0] if covering else None)


@given(st.integers(0, 200))
def test_the_serving_process_finds_what_the_builder_finds(size: int) -> None:
    index = build()
    chosen = {item.solution_digest: WALKED.solutions[item.solution_digest] for item in index.solutions}
    table = Table(index.definitions[0], DEFINITION, chosen)
    assert table.find({"M": size}, DEVICE).entry == find(index, DEFINITION.digest, {"M": size}, DEVICE)


def test_outside_measured_points_on_another_device_or_definition_nothing_is_found() -> None:
    index = build()
    assert find(index, DEFINITION.digest, {"M": 10**6}) is None
    assert find(index, DEFINITION.digest, {}) is None
    assert find(index, "sha256:" + "0" * 64, {"M": 8}) is None
    size = index.definitions[0].entries[0].box.axes["M"][0]
    assert find(index, DEFINITION.digest, {"M": size}, DEVICE) is not None
    assert find(index, DEFINITION.digest, {"M": size}, "sm_90a/132/hbm3e") is None


def test_overlapping_guards_are_refused() -> None:
    first, second = WALKED.decisions[:2]
    clash = second.model_copy(update={"box": first.box})
    with pytest.raises(ContractError, match="overlap"):
        build(decisions=[first, clash])


def test_an_entry_for_another_device_is_found_unreachable() -> None:
    index = build()
    block = index.definitions[0]
    box = block.entries[0].box.model_copy(update={"device_class": "sm_90a/132/hbm3e"})
    entry = block.entries[0].model_copy(update={"box": box})
    broken = index.model_copy(
        update={"definitions": (block.model_copy(update={"entries": (entry, *block.entries[1:])}),)}
    )
    with pytest.raises(ContractError, match="does not reach its entry"):
        check(broken)


def test_an_entry_whose_solution_is_not_listed_is_refused() -> None:
    with pytest.raises(ContractError, match="not listed"):
        check(build().model_copy(update={"solutions": ()}))


def test_a_promotion_without_an_estimate_is_refused() -> None:
    decision = next(item for item in WALKED.decisions if item.verdict == "promoted")
    with pytest.raises(ContractError, match="without an estimate"):
        build(decisions=[decision.model_copy(update={"estimates": ()})])


def test_a_definition_that_nobody_measured_still_has_its_incumbent_as_default() -> None:
    (block,) = build(decisions=[]).definitions
    assert (block.default, block.entries) == ("incumbent", ())
    assert block.default_reason == "nothing of this definition was measured"


def test_the_order_of_decisions_changes_no_digest() -> None:
    assert build(decisions=WALKED.decisions[::-1]).digest == build().digest


@given(st.tuples(*[st.integers(0, 9)] * 8))
def test_boxes_overlap_exactly_if_some_call_lies_in_both(ends: tuple[int, ...]) -> None:
    a, b, c, d = (tuple(sorted(ends[place : place + 2])) for place in (0, 2, 4, 6))
    one, other = (
        KeyBox(definition_digest=DEFINITION.digest, device_class=DEVICE, layout="contiguous", axes={"x": x, "y": y})
        for x, y in ((a, b), (c, d))
    )
    calls = [{"x": x, "y": y} for x in range(10) for y in range(10)]
    assert overlap(one, other) == any(one.covers(call) and other.covers(call) for call in calls)

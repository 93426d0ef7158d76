"""Dispatch: every promotion reachable, none shadowed, each with its evidence; everywhere else the incumbent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core import dispatch
from fib_core.errors import ContractError
from fib_core.index.evidence import Measured, Question, samples_digest
from fib_core.index.guard import dtype_class
from fib_core.index.lookup import check, corners, find, find_kept, just_outside, overlap
from fib_core.runtime.table import Table
from schemas.decision import KeyBox
from schemas.index import DispatchIndex, IndexEntry
from tests.core.road import Walked, walk
from tests.core.world import DEVICE, World, gemm, solution

DEFINITION = gemm()
WALKED: Walked = walk(World({"old": 1.0, "fast": 0.5}), [solution("fast", DEFINITION)])
FACTS = next(iter(WALKED.measured.values()))
PROMOTED = [item for item in WALKED.decisions if item.verdict == "promoted"]


def build(walked: Walked = WALKED, decisions=None) -> DispatchIndex:
    chosen = walked.decisions if decisions is None else decisions
    facts = dict(walked.measured) | {item.digest: FACTS for item in chosen if item.evaluations}
    return dispatch.build(walked.snapshot, chosen, walked.solutions, "quick", DEVICE, {"b": "1"}, facts)


def test_the_scenario_has_promotions_and_kept_keys() -> None:
    assert 0 < len(PROMOTED) < len(WALKED.decisions)


def test_every_decision_is_in_an_entry_or_listed_as_kept_and_counts_add_up() -> None:
    (block,) = build().definitions
    kept = {item.key: item for item in block.kept}
    assert set(block.promoted_keys) == {item.key for item in PROMOTED}
    assert set(kept) == {item.key for item in WALKED.decisions} - set(block.promoted_keys)
    assert block.dropped_count == len(kept)
    assert len(block.promoted_keys) + len(block.kept) == len(WALKED.decisions)
    for decision in WALKED.decisions:
        if decision.verdict != "promoted":
            found = kept[decision.key]
            assert (found.verdict, found.reason) == (decision.verdict, decision.reason)
            assert found.decision_digest == decision.digest


def test_an_entry_carries_the_evidence_of_every_key_that_it_covers() -> None:
    index = build()
    by_key = {item.key: item for item in PROMOTED}
    for entry in index.definitions[0].entries:
        assert entry.box.dtype == dtype_class(DEFINITION)
        assert entry.key in entry.covered_keys
        for item in entry.evidence:
            decision = by_key[item.key]
            assert item.decision_digest == decision.digest
            assert item.samples_digest == samples_digest(decision.evaluations)
            assert item.contest_digest == Question.of(decision).digest
            assert (item.snapshot_digest, item.rounds) == (WALKED.snapshot.digest, decision.rounds)
            assert (item.device_ids, item.library_versions) == (("cpu:0",), {"torch": "2"})
            assert (item.policy.cache, item.policy.launch, item.policy.profile) == ("warm", "eager", "quick")


def test_a_decision_whose_evaluations_were_measured_in_two_ways_is_refused() -> None:
    one, other = list(WALKED.rounds.values())[:2]
    newer = other.environment.model_copy(update={"libraries": {"torch": "3"}})
    with pytest.raises(ContractError, match="2 ways"):
        Measured.of([one, other.model_copy(update={"environment": newer})])
    timed = other.job.model_copy(update={"timer": "cupti"})
    with pytest.raises(ContractError, match="2 ways"):
        Measured.of([one, other.model_copy(update={"job": timed})])
    with pytest.raises(ContractError, match="0 ways"):
        Measured.of([])


def test_every_device_driver_and_cache_policy_that_took_part_is_named() -> None:
    one, other = list(WALKED.rounds.values())[:2]
    place = other.environment.model_copy(update={"device_id": "cpu:1", "driver": "570.1"})
    found = Measured.of([one, other.model_copy(update={"environment": place, "cache_policy": "cold"})])
    assert (found.device_ids, found.drivers, found.cache) == (("cpu:0", "cpu:1"), ("570.1",), "cold; warm")


def test_the_name_of_the_samples_depends_on_every_evaluation_and_on_no_order() -> None:
    names = PROMOTED[0].evaluations
    assert samples_digest(names) == samples_digest(names[::-1])
    assert samples_digest(names) != samples_digest(names[1:])


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
    found = table.find({"M": size}, DEVICE).entry
    call = {"M": size}
    assert found == (
        find(index, DEFINITION.digest, call, DEVICE) or find_kept(index, DEFINITION.digest, call, DEVICE)
    )


def test_outside_measured_points_on_another_device_or_definition_nothing_is_found() -> None:
    index = build()
    assert find(index, DEFINITION.digest, {"M": 10**6}) is None
    assert find(index, DEFINITION.digest, {}) is None
    assert find(index, "sha256:" + "0" * 64, {"M": 8}) is None
    size = index.definitions[0].entries[0].box.axes["M"][0]
    assert find(index, DEFINITION.digest, {"M": size}, DEVICE) is not None
    assert find(index, DEFINITION.digest, {"M": size}, "sm_90a/132/hbm3e") is None


def test_kept_keys_points_just_outside_and_far_calls_fall_to_the_default() -> None:
    index = build()
    (block,) = index.definitions
    assert block.kept
    for kept in block.kept:
        assert all(find(index, DEFINITION.digest, call) is None for call in corners(kept.box))
    for entry in block.entries:
        for call in just_outside(entry.box):
            found = find(index, DEFINITION.digest, call)
            assert found is not entry
            assert found is None or found.box.covers(call)


def test_two_decisions_on_one_key_are_refused_and_never_merged() -> None:
    first = PROMOTED[0]
    better = first.model_copy(update={"estimates": (first.estimates[0].model_copy(update={"ratio": 9.0}),)})
    with pytest.raises(ContractError, match="two decisions"):
        build(decisions=[*WALKED.decisions, better])


def broken(update) -> DispatchIndex:
    """The index with its first entry changed."""
    index = build()
    block = index.definitions[0]
    entry = update(block.entries[0])
    entries = (entry, *block.entries[1:])
    return index.model_copy(update={"definitions": (block.model_copy(update={"entries": entries}),)})


def test_overlapping_guards_are_refused() -> None:
    index = build()
    block = index.definitions[0]
    twice = block.model_copy(update={"entries": (*block.entries, block.entries[0])})
    with pytest.raises(ContractError, match="overlap"):
        check(index.model_copy(update={"definitions": (twice,)}))


def test_an_entry_that_reaches_into_a_kept_keys_box_is_refused() -> None:
    kept = build().definitions[0].kept[0].box
    with pytest.raises(ContractError, match="overlap"):
        check(broken(lambda entry: entry.model_copy(update={"box": kept})))


def test_an_entry_for_another_device_is_found_unreachable() -> None:
    def moved(entry: IndexEntry) -> IndexEntry:
        box = entry.box.model_copy(update={"device_class": "sm_90a/132/hbm3e"})
        return entry.model_copy(update={"box": box})

    with pytest.raises(ContractError, match="does not reach its entry"):
        check(broken(moved))


def test_an_entry_whose_solution_is_not_listed_is_refused() -> None:
    with pytest.raises(ContractError, match="not listed"):
        check(build().model_copy(update={"solutions": ()}))


def test_counts_that_do_not_add_up_are_refused() -> None:
    index = build()
    block = index.definitions[0]
    wrong = block.model_copy(update={"dropped_count": block.dropped_count + 1})
    with pytest.raises(ContractError, match="dropped"):
        check(index.model_copy(update={"definitions": (wrong,)}))
    both = block.kept[0].model_copy(update={"key": block.entries[0].key})
    wrong = block.model_copy(update={"kept": (both, *block.kept[1:])})
    with pytest.raises(ContractError, match="two verdicts"):
        check(index.model_copy(update={"definitions": (wrong,)}))


def test_a_promotion_without_an_estimate_is_refused() -> None:
    with pytest.raises(ContractError, match="without an estimate"):
        build(decisions=[PROMOTED[0].model_copy(update={"estimates": ()})])


def test_a_promotion_without_evidence_is_refused() -> None:
    with pytest.raises(ContractError, match="nothing is known of how it was measured"):
        dispatch.build(WALKED.snapshot, PROMOTED[:1], WALKED.solutions, "quick", DEVICE, {})


def test_a_promotion_that_no_box_covers_is_never_lost_silently() -> None:
    with pytest.raises(ContractError, match="no box covers"):
        build(decisions=[PROMOTED[0].model_copy(update={"workloads": ()})])


def test_a_definition_that_nobody_measured_still_has_its_incumbent_as_default() -> None:
    (block,) = build(decisions=[]).definitions
    assert (block.default, block.entries, block.kept) == ("incumbent", (), ())
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

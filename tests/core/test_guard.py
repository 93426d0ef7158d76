"""Guards besides the axis box, and boxes that several keys or a narrow winner share: never wider than measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core import dispatch
from fib_core.index.guard import covers, dtype_class, length_guard, mean_lengths
from fib_core.index.lookup import corners
from schemas.decision import Decision, Estimate, KeyBox
from schemas.snapshot import Placed, Snapshot
from tests.core.test_dispatch import DEFINITION, FACTS, PROMOTED
from tests.core.world import DEVICE, dense, paged, solution


def test_the_dtype_class_names_inputs_and_outputs_and_no_python_scalar() -> None:
    assert dtype_class(DEFINITION) == "float32->float32"
    assert dtype_class(paged()) == "float32+int32->float32"


POINTS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 400)), min_size=1, max_size=6)


@given(POINTS)
def test_a_length_guard_covers_every_measured_point_and_both_ends_of_their_hull(points) -> None:
    calls = [{"batch_size": batch, "len_indptr": batch + 1, "num_kv_indices": pages} for batch, pages in points]
    axes = {name: (min(c[name] for c in calls), max(c[name] for c in calls)) for name in calls[0]}
    box = KeyBox(
        definition_digest=DEFINITION.digest, device_class=DEVICE, layout="contiguous", axes=axes,
        lengths=length_guard(calls),
    )  # fmt: skip
    assert all(covers(box, call) for call in (*calls, *corners(box)))


def test_a_call_with_sequences_of_another_length_class_is_outside_although_its_axes_are_inside() -> None:
    calls = [{"batch_size": 3, "num_kv_indices": 30}, {"batch_size": 8, "num_kv_indices": 80}]
    guard = length_guard(calls)
    box = KeyBox(
        definition_digest=DEFINITION.digest, device_class=DEVICE, layout="contiguous",
        axes={"batch_size": (3, 8), "num_kv_indices": (30, 80)}, lengths=guard,
    )  # fmt: skip
    assert guard == {"num_kv_indices": (16, 16)}
    odd = {"batch_size": 8, "num_kv_indices": 30}
    assert mean_lengths(odd) == {"num_kv_indices": 4}
    assert box.covers(odd)
    assert not covers(box, odd)
    assert length_guard([{"M": 4}]) == {}


def handmade(supports: tuple[str, ...], sizes: tuple[int, ...]) -> tuple[Snapshot, Decision, dict]:
    """One key, ``sizes`` of it measured and won by a solution with declared support, a timed holdout between them."""
    fast = solution("fast", DEFINITION, supports=supports)
    digest = fast.digest_for(DEFINITION.digest)
    ends = [Placed(workload=dense(DEFINITION, size), split="train", family=str(size), weight=1.0) for size in sizes]
    middle = Placed(workload=dense(DEFINITION, sizes[0] + 1), split="holdout", family="h", weight=0.1)
    snapshot = Snapshot(
        definitions=(DEFINITION,), workloads=(*ends, middle), incumbents={}, weights="none", split_key="k",
        policy_version=1,
    )  # fmt: skip
    estimate = Estimate(
        solution_digest=digest, ratio=1.5, standard_error=0.01, interval=(1.4, 1.6), p_value=0.001, p_holm=0.001,
        log_ratios=(0.4,),
    )  # fmt: skip
    decision = PROMOTED[0].model_copy(update={
        "key": "M=16", "solution_digest": digest, "estimates": (estimate,), "finalists": (digest,),
        "workloads": tuple(sorted(item.workload.digest for item in (*ends, middle))),
    })  # fmt: skip
    return snapshot, decision, {digest: fast}


def test_a_box_whose_ends_the_winner_supports_is_served_whole() -> None:
    snapshot, decision, solutions = handmade(("M <= 16",), (10, 12))
    facts = {decision.digest: FACTS}
    (block,) = dispatch.build(snapshot, [decision], solutions, "quick", DEVICE, {}, facts).definitions
    assert [entry.box.axes for entry in block.entries] == [{"M": (10, 12)}]


def test_a_box_that_the_winner_does_not_support_at_its_ends_shrinks_to_what_was_measured() -> None:
    snapshot, decision, solutions = handmade(("M != 12",), (10, 12))
    facts = {decision.digest: FACTS}
    (block,) = dispatch.build(snapshot, [decision], solutions, "quick", DEVICE, {}, facts).definitions
    assert [entry.box.axes for entry in block.entries] == [{"M": (10, 10)}, {"M": (12, 12)}]
    assert {entry.key for entry in block.entries} == {"M=16"}
    assert block.promoted_keys == ("M=16",)


@pytest.mark.parametrize("ratios", [(1.2, 1.9), (1.9, 1.2)])
def test_an_entry_of_several_keys_publishes_its_weakest_and_lists_them_all(ratios: tuple[float, float]) -> None:
    snapshot, decision, solutions = handmade((), (8, 10))
    decisions = []
    for key, ratio in zip(("M=8", "M=16"), ratios, strict=True):
        estimate = decision.estimates[0].model_copy(update={"ratio": ratio})
        decisions.append(decision.model_copy(update={"key": key, "estimates": (estimate,)}))
    facts = {item.digest: FACTS for item in decisions}
    (block,) = dispatch.build(snapshot, decisions, solutions, "quick", DEVICE, {}, facts).definitions
    (entry,) = block.entries
    weak = decisions[ratios.index(1.2)]
    assert (entry.ratio, entry.key, entry.decision_digest) == (1.2, weak.key, weak.digest)
    assert {item.key: item.ratio for item in entry.evidence} == dict(zip(("M=8", "M=16"), ratios, strict=True))
    assert entry.box.axes == {"M": (8, 10)}
    assert block.promoted_keys == ("M=16", "M=8")

"""Split: a side is a matter of shape and key, never of traffic."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.split import FAMILIES_FOR_HOLDOUT, STRESS, family_of, sides_of, split, stress_workloads
from schemas.snapshot import Snapshot
from schemas.workload import Workload
from tests.core.world import dense, gemm, paged

DEFINITION = gemm()
DEFINITIONS = {DEFINITION.name: DEFINITION}
sizes = st.lists(st.integers(0, 5000), max_size=25, unique=True)
keys = st.text(alphabet="abcdef", min_size=1, max_size=6)


def freeze(workloads: list[Workload], key: str = "k", **more) -> Snapshot:
    return split(workloads, DEFINITIONS, {}, key, more.pop("weights", "call_counts"), **more)


def members(values: list[int], count: int = 1) -> list[Workload]:
    return [dense(DEFINITION, size, count) for size in values]


def sides(snapshot: Snapshot) -> dict[str, str]:
    return {item.workload.digest: item.split for item in snapshot.workloads}


@given(sizes, keys)
def test_a_family_lies_on_one_side_and_every_workload_on_exactly_one(values: list[int], key: str) -> None:
    snapshot = freeze(members(values), key)
    assert Counter(item.workload.digest for item in snapshot.workloads) == Counter(
        item.digest for item in members(values)
    )
    by_family: dict[str, set[str]] = {}
    for item in snapshot.workloads:
        by_family.setdefault(item.family, set()).add(item.split)
    assert all(len(found) == 1 for found in by_family.values())


@given(sizes, keys)
def test_five_families_always_leave_a_holdout_and_something_to_train_on(values: list[int], key: str) -> None:
    snapshot = freeze(members(values), key)
    found = {item.split for item in snapshot.workloads}
    families = {family_of(item.workload) for item in snapshot.workloads}
    if len(families) >= FAMILIES_FOR_HOLDOUT:
        assert found == {"train", "holdout"}
    elif families:
        assert "train" in found


@given(sizes, st.integers(2, 1000), keys)
def test_growing_counts_move_nobody(values: list[int], factor: int, key: str) -> None:
    assert sides(freeze(members(values), key)) == sides(freeze(members(values, factor), key))


@given(sizes, sizes, keys)
def test_new_shapes_move_nobody_that_an_earlier_snapshot_placed(old: list[int], new: list[int], key: str) -> None:
    before = freeze(members(old), key)
    after = freeze(members(sorted({*old, *new})), key, earlier=sides_of(before))
    assert sides(before).items() <= sides(after).items()


@given(sizes, st.randoms(use_true_random=False))
def test_the_order_of_workloads_changes_no_digest(values: list[int], rng) -> None:
    shuffled = list(values)
    rng.shuffle(shuffled)
    assert freeze(members(values)).digest == freeze(members(shuffled)).digest


def test_about_a_fifth_of_families_is_held_out_and_the_key_decides_which() -> None:
    values = [2**power for power in range(40)]
    counts = [Counter(sides(freeze(members(values), f"key-{n}")).values())["holdout"] for n in range(50)]
    assert 0.16 < sum(counts) / (40 * 50) < 0.24
    assert sides(freeze(members(values), "a")) != sides(freeze(members(values), "b"))


def test_weights_are_shares_of_calls_within_a_definition() -> None:
    snapshot = freeze([dense(DEFINITION, 1, 30), dense(DEFINITION, 2, 10)])
    assert sorted(item.weight for item in snapshot.workloads) == [0.25, 0.75]
    assert snapshot.weights == "call_counts"


def test_without_call_logs_every_workload_weighs_one() -> None:
    snapshot = freeze([dense(DEFINITION, size, None) for size in (1, 2, 3)], weights="none")
    assert [item.weight for item in snapshot.workloads] == [1.0, 1.0, 1.0]


def test_a_workload_that_comes_twice_is_placed_once_with_both_counts() -> None:
    (placed,) = freeze([dense(DEFINITION, 4, 3), dense(DEFINITION, 4, 5)]).workloads
    assert placed.workload.call_count == 8


def test_stress_weighs_nothing_and_never_displaces_traffic() -> None:
    awkward = [dense(DEFINITION, 1, None, (STRESS,)), dense(DEFINITION, 13, None, (STRESS,))]
    snapshot = freeze(members([1, 2]), stress=awkward)
    by_size = {item.workload.axes["M"]: (item.split, item.weight) for item in snapshot.workloads}
    assert by_size[1][0] != "stress"
    assert by_size[13] == ("stress", 0.0)
    assert len(snapshot.workloads) == 3


@pytest.mark.parametrize("definition", [gemm(), paged(4)], ids=lambda item: item.name)
def test_stress_workloads_are_few_valid_and_tagged(definition) -> None:
    made = stress_workloads(definition)
    assert 1 <= len(made) <= 2
    assert all(STRESS in item.tags and item.call_count is None for item in made)


def test_the_snapshot_digest_covers_the_split_key() -> None:
    assert freeze(members([1, 2]), "a").digest != freeze(members([1, 2]), "b").digest

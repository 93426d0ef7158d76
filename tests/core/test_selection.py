"""Selection: few workloads between which most calls lie, enough families for a decision, and nothing unaccounted."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.decision.profiles import QUICK
from fib_core.dedup import deduplicate
from fib_core.screen import timed_workloads
from fib_core.split import family_of, split, stress_workloads
from fib_core.workloads import selection
from fib_core.workloads.axisclass import are_neighbours, class_key
from fib_core.workloads.families import CORE, FAMILIES_FOR_HOLDOUT
from fib_core.workloads.ragged import implied_axes
from fib_core.workloads.selection import select
from schemas.definition import Definition
from schemas.snapshot import Placed, Snapshot
from schemas.trace import TraceRecord
from schemas.workload import Workload
from tests.core.plots import SNAPSHOT, A, inside
from tests.core.world import DEVICE, dense, gemm, paged

GEMM = gemm()
logs = st.dictionaries(st.integers(1, 300), st.integers(1, 50), min_size=1, max_size=40)
keys = st.text(alphabet="abcdef", min_size=1, max_size=4)


def workloads(log: dict[int, int]) -> list[Workload]:
    return [dense(GEMM, size, count) for size, count in log.items()]


def frozen(kept: list[Workload], key: str, definition: Definition = GEMM) -> Snapshot:
    return split(kept, {definition.name: definition}, {}, key, "call_counts", stress_workloads(definition))


def served(snapshot: Snapshot, timed: tuple[Placed, ...], calls: dict[tuple[int, ...], int]) -> float:
    """Share of calls inside boxes, if one solution wins wherever something was timed."""
    from fib_core.index.boxes import learn

    boxes = learn(_decisions(snapshot, timed), list(snapshot.workloads))
    named = [type(box)({f"x{i}": span for i, span in enumerate(box.axes.values())}, box.decisions) for box in boxes]
    return sum(count for call, count in calls.items() if any(inside(box, call) for box in named)) / sum(calls.values())


def _decisions(snapshot: Snapshot, timed: tuple[Placed, ...]) -> list:
    from schemas.decision import Decision, KeyBox

    groups: dict[str, list[Placed]] = {}
    for item in snapshot.workloads:
        if item.split == "train":
            groups.setdefault(class_key(item.workload.axes), []).append(item)
    held = [item for item in timed if item.split == "holdout"]
    found = []
    for key, items in groups.items():
        train = [item for item in items if item in timed]
        near = [item for item in held if are_neighbours(items[0].workload.axes, item.workload.axes)] or held
        found.append(
            Decision(
                snapshot_digest=SNAPSHOT, definition_digest=items[0].workload.definition_digest, definition="made_up",
                key=key, box=KeyBox(definition_digest=SNAPSHOT, device_class=DEVICE, layout="contiguous", axes={}),
                profile="quick", verdict="promoted" if train else "kept_incumbent",
                solution_digest=A if train else None, incumbent_digest=None, reason="made up", alpha=0.05,
                min_effect=0.1, workloads=tuple(item.workload.digest for item in [*train, *near]) if train else (),
            )
        )  # fmt: skip
    return found


@given(logs, st.integers(1, 12), keys, st.one_of(st.none(), st.integers(1, 4)))
def test_what_is_kept_and_what_is_left_out_are_all_there_is(
    log: dict[int, int], limit: int, key: str, decided: int | None
) -> None:
    found = select(workloads(log), limit, key, decided)
    assert len(found.kept) <= limit
    names = [item.digest for item in [*found.kept, *(each.workload for each in found.left_out)]]
    assert sorted(names) == sorted(item.digest for item in workloads(log))
    kept = sum(item.call_count or 0 for item in found.kept) / sum(log.values())
    assert kept + sum(item.share for item in found.left_out) == pytest.approx(1.0)
    assert all(f"the {limit} workloads" in item.reason for item in found.left_out)


@given(logs, keys, st.randoms(use_true_random=False))
def test_the_order_of_workloads_and_calls_changes_nothing(log: dict[int, int], key: str, rng: random.Random) -> None:
    listed = workloads(log)
    records = [TraceRecord(definition=GEMM.name, axes={"M": size}) for size, count in log.items() for _ in range(count)]
    first = select(listed, 6, key, 3, records)
    rng.shuffle(listed)
    rng.shuffle(records)
    again = select(listed, 6, key, 3, records)
    assert [(item.digest, item.tags) for item in again.kept] == [(item.digest, item.tags) for item in first.kept]


@given(logs, keys, st.integers(5, 12), st.one_of(st.none(), st.just(3)))
def test_families_suffice_for_a_decision_and_the_split_agrees_about_sides(
    log: dict[int, int], key: str, limit: int, decided: int | None
) -> None:
    listed = workloads(log)
    kept = select(listed, limit, key, decided).kept
    families, there = {family_of(item) for item in kept}, {family_of(item) for item in listed}
    assert len(families) >= min(FAMILIES_FOR_HOLDOUT, len(there))
    if len(there) >= FAMILIES_FOR_HOLDOUT:
        full = {item.family: item.split for item in frozen(listed, key).workloads if item.split != "stress"}
        mine = {item.family: item.split for item in frozen(kept, key).workloads if item.split != "stress"}
        assert mine.items() <= full.items()
        assert "holdout" in mine.values()


def test_a_core_of_three_bounds_a_box_that_serves_most_calls_in_a_quick_run() -> None:
    log = {1: 30, 2: 20, 3: 5, 4: 20, 6: 5, 8: 10, 12: 3, 16: 8, 24: 3, 32: 5, 48: 2, 64: 20}
    calls = {(size,): count for size, count in log.items()}
    shares = []
    for key in "abcdefgh":
        snapshot = frozen(select(workloads(log), 6, key, 3).kept, key)
        timed = timed_workloads(snapshot, GEMM, QUICK)
        assert len(timed) <= 4
        shares.append(served(snapshot, timed, calls))
    frequent = sorted(workloads(log), key=lambda item: -(item.call_count or 0))[:6]
    plain = [frozen(frequent, key) for key in "abcdefgh"]
    before = [served(snapshot, timed_workloads(snapshot, GEMM, QUICK), calls) for snapshot in plain]
    assert sum(shares) / 8 > 1.3 * sum(before) / 8


def test_where_only_some_are_decided_those_are_tagged_and_no_other_train_call_blocks_their_box() -> None:
    log = dict.fromkeys((1, 2, 4, 8, 16, 32, 64, 128), 10)
    for key in "abcdefgh":
        kept = select(workloads(log), 6, key, 3).kept
        snapshot = frozen(kept, key)
        core = [item for item in snapshot.workloads if CORE in item.workload.tags]
        assert 2 <= len(core) <= 3
        ends = sorted(item.workload.axes["M"] for item in core if item.split == "train")
        others = [item for item in snapshot.workloads if item.split == "train" and item not in core]
        if len(ends) == 2 and any(item.split == "holdout" and ends[0] < item.workload.axes["M"] < ends[1]
                                  for item in core):  # fmt: skip
            assert not [item for item in others if ends[0] < item.workload.axes["M"] < ends[1]]
        assert all(item in timed_workloads(snapshot, GEMM, QUICK) for item in core)
    assert all(item.tags == () for item in select(workloads(log), 6, "a").kept)


def test_ragged_calls_are_covered_from_edge_to_edge() -> None:
    definition = paged(4)
    rng = random.Random(5)
    records = []
    for _ in range(400):
        batch = rng.choice((1, 1, 2, 4, 8, 16))
        lens = tuple(rng.randint(20, 400) for _ in range(batch))
        axes = implied_axes(definition, {"kv_lens": lens}) | {"num_pages": 4096}
        records.append(TraceRecord(definition=definition.name, axes=axes, structure={"kv_lens": lens}))
    calls: dict[tuple[int, ...], int] = {}
    for record in records:
        call = tuple(record.axes[name] for name in sorted(record.axes))
        calls[call] = calls.get(call, 0) + 1
    shares = {}
    for edges in (False, True):
        listed = deduplicate(records, {definition.name: definition}, edges=edges)
        kept = select(listed, 12, "k", None, records).kept
        snapshot = frozen(kept, "k", definition)
        shares[edges] = served(snapshot, snapshot.workloads, calls)
    assert shares[True] > 0.6
    assert shares[True] > shares[False]


def test_many_calls_are_thinned_and_still_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "POOL_MAX", 30)
    monkeypatch.setattr(selection, "TRAFFIC_MAX", 50)
    log = dict.fromkeys(range(1, 400), 1)
    shares = []
    for key in "abcdefgh":
        snapshot = frozen(select(workloads(log), 8, key).kept, key)
        shares.append(served(snapshot, snapshot.workloads, {(size,): 1 for size in log}))
    assert sum(shares) / 8 > 0.4


def test_a_definition_without_sizes_keeps_its_one_call() -> None:
    fixed = GEMM.model_copy(update={"axes": dict.fromkeys(GEMM.axes, GEMM.axes["N"])})
    (kept,) = select([dense(fixed, 1, 7)], 6, "k").kept
    assert kept.axes == {}

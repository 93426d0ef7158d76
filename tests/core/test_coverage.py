"""Coverage: counts of logged calls that add up, on all calls and on the held-out families alone."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from fib_core.account.coverage import measure
from fib_core.split import split
from fib_core.workloads.families import family_name, hashed_side
from schemas.decision import KeyBox
from schemas.index import DispatchIndex, IndexedDefinition, IndexedSolution, IndexEntry, KeptKey
from schemas.snapshot import Snapshot
from schemas.trace import TensorLayout, TraceRecord
from tests.core.world import DEVICE, dense, gemm, solution

GEMM = gemm()
FAST = solution("fast", GEMM, supports=("M % 2 == 0",))
DIGEST = FAST.digest_for(GEMM.digest)
OTHER = "sha256:" + "5" * 64
KEY = "k"
Spans = Sequence[tuple[int, int]]


def guard(low: int, high: int) -> KeyBox:
    return KeyBox(definition_digest=GEMM.digest, device_class=DEVICE, layout="contiguous", axes={"M": (low, high)})


def snapshot(sizes: Sequence[int]) -> Snapshot:
    return split([dense(GEMM, size) for size in sizes], {GEMM.name: GEMM}, {}, KEY, "call_counts")


def index(served: Spans, kept: Spans = ()) -> DispatchIndex:
    entries = tuple(
        IndexEntry(key=f"e{low}", box=guard(low, high), solution_digest=DIGEST, ratio=2.0, standard_error=0.1,
                   interval=(1.5, 2.5), rounds=8, finalist_count=1, reason="made up", decision_digest=OTHER)
        for low, high in served
    )  # fmt: skip
    rest = tuple(
        KeptKey(key=f"k{low}", box=guard(low, high), verdict="kept_incumbent", reason="made up", decision_digest=OTHER)
        for low, high in kept
    )
    block = IndexedDefinition(
        name=GEMM.name, op_type="gemm", definition_digest=GEMM.digest, incumbent_digest=None, incumbent_name=None,
        default_reason="made up", entries=entries, kept=rest, dropped_count=len(rest),
    )  # fmt: skip
    return DispatchIndex(
        snapshot_digest=OTHER, profile="quick", device_class=DEVICE, library_versions={}, definitions=(block,),
        solutions=(IndexedSolution(name="fast", author="lab", solution_digest=DIGEST, object_key="solutions/x.json"),),
    )  # fmt: skip


def calls(*sizes: int) -> list[TraceRecord]:
    return [TraceRecord(definition=GEMM.name, axes={"M": size}) for size in sizes]


def test_served_and_kept_calls_are_inside_and_the_rest_is_neither() -> None:
    (row,) = measure(index([(4, 8)], [(16, 16)]), snapshot([4, 8]), calls(4, 5, 8, 16, 99))
    assert (row.calls, row.inside, row.served) == (5, 4, 3)
    assert (row.inside_share, row.served_share) == (0.8, 0.6)


def test_a_call_outside_the_declared_support_is_inside_but_not_served() -> None:
    (row,) = measure(index([(4, 8)]), snapshot([4, 8]), calls(4, 5), {DIGEST: FAST})
    assert (row.inside, row.served) == (2, 1)


def test_strided_calls_are_never_inside() -> None:
    (strided,) = calls(5)
    strided = strided.model_copy(update={"layout": {"A": TensorLayout(dtype="float32", contiguous=False)}})
    (row,) = measure(index([(4, 8)]), snapshot([4]), [strided, *calls(5)])
    assert (row.calls, row.inside) == (2, 1)


def test_boxes_of_one_point_are_counted_apart() -> None:
    (row,) = measure(index([(4, 8), (9, 9), (20, 20)]), snapshot([4]), calls(4))
    assert (row.boxes, row.point_boxes) == (3, 2)


def test_definitions_without_calls_and_calls_of_other_definitions_have_no_row() -> None:
    stranger = TraceRecord(definition="other", axes={"M": 4})
    assert measure(index([(4, 8)]), snapshot([4]), [stranger]) == []


def test_a_family_lies_where_the_snapshot_put_it_even_against_the_hash() -> None:
    size = next(size for size in (1, 2, 4, 8, 16, 32, 64)
                if hashed_side(GEMM.digest, family_name({"M": size}, ""), KEY) == "holdout")  # fmt: skip
    frozen = snapshot([size])
    assert [item.split for item in frozen.workloads] == ["train"]
    assert measure(index([(size, size)]), frozen, calls(size))[0].holdout_calls == 0
    assert measure(index([(size, size)]), snapshot([10**6]), calls(size))[0].holdout_calls == 1


@given(st.lists(st.integers(1, 200), min_size=1, max_size=60), st.integers(1, 60), st.integers(1, 60))
def test_counts_add_up_and_holdout_is_a_part_of_all(sizes: list[int], low: int, width: int) -> None:
    frozen = snapshot(sorted({1, 3, 9, 33, 100, 180, *sizes}))
    (row,) = measure(index([(low, low + width)], [(low + width + 1, low + width + 3)]), frozen, calls(*sizes))
    assert row.calls == len(sizes)
    assert row.served == sum(low <= size <= low + width for size in sizes)
    assert row.inside == sum(low <= size <= low + width + 3 for size in sizes)
    held = {item.family for item in frozen.workloads if item.split == "holdout"}
    mine = [size for size in sizes if family_name({"M": size}, "") in held]
    assert row.holdout_calls == len(mine)
    assert row.holdout_served == sum(low <= size <= low + width for size in mine)
    assert row.holdout_served <= row.holdout_inside <= row.holdout_calls <= row.calls

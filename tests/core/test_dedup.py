"""Dedup: order-free, idempotent, and no call is lost on the way."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fib_core.dedup import STRIDED, deduplicate, select, structure_class
from fib_core.split import family_of
from fib_core.workloads.ragged import implied_axes
from schemas.trace import TensorLayout, TraceRecord
from schemas.workload import Workload
from tests.core.world import gemm, paged, rope, sampling

DEFINITIONS = {item.name: item for item in (gemm(), paged(4), rope(), sampling())}


def dense_call(size: int) -> TraceRecord:
    return TraceRecord(definition="gemm_n8_k4", axes={"M": size})


def ragged_call(lens: tuple[int, ...]) -> TraceRecord:
    axes = implied_axes(paged(4), {"kv_lens": lens}) | {"num_pages": 256}
    return TraceRecord(definition=paged(4).name, axes=axes, structure={"kv_lens": lens})


def token_call(seen: tuple[int, ...]) -> TraceRecord:
    return TraceRecord(
        definition="rope_d8", axes={"num_tokens": len(seen), "max_seq_len": 512}, structure={"positions": seen}
    )


calls = st.lists(
    st.one_of(
        st.integers(0, 40).map(dense_call),
        st.lists(st.integers(0, 60), min_size=1, max_size=4).map(lambda lens: ragged_call(tuple(lens))),
        st.lists(st.integers(0, 511), min_size=1, max_size=4).map(lambda seen: token_call(tuple(seen))),
    ),
    max_size=30,
)


def facts(workloads: list[Workload]) -> list[tuple[str, int | None]]:
    return [(item.digest, item.call_count) for item in workloads]


@given(calls, st.randoms(use_true_random=False))
def test_the_order_of_calls_changes_nothing(records: list[TraceRecord], rng: random.Random) -> None:
    shuffled = list(records)
    rng.shuffle(shuffled)
    assert facts(deduplicate(shuffled, DEFINITIONS)) == facts(deduplicate(records, DEFINITIONS))


@given(calls)
def test_call_counts_add_up_to_the_records(records: list[TraceRecord]) -> None:
    counts: Counter[str] = Counter()
    for workload in deduplicate(records, DEFINITIONS):
        counts[workload.definition_digest] += workload.call_count or 0
    by_name = Counter(record.definition for record in records)
    assert counts == Counter({DEFINITIONS[name].digest: count for name, count in by_name.items()})


@given(calls, st.integers(2, 4))
def test_more_of_the_same_traffic_changes_counts_and_nobody(records: list[TraceRecord], times: int) -> None:
    once, often = deduplicate(records, DEFINITIONS), deduplicate(records * times, DEFINITIONS)
    assert facts(often) == [(digest, (count or 0) * times) for digest, count in facts(once)]


@given(calls)
def test_deduplicating_the_representatives_again_keeps_them_all(records: list[TraceRecord]) -> None:
    once = {item.digest for item in deduplicate(records, DEFINITIONS)}
    chosen = [record for record in records if deduplicate([record], DEFINITIONS)[0].digest in once]
    assert {item.digest for item in deduplicate(chosen, DEFINITIONS)} == once


@given(calls, st.randoms(use_true_random=False))
def test_with_edges_too_order_changes_nothing_and_counts_add_up(records: list[TraceRecord], rng: random.Random) -> None:
    shuffled = list(records)
    rng.shuffle(shuffled)
    found = deduplicate(records, DEFINITIONS, edges=True)
    assert facts(deduplicate(shuffled, DEFINITIONS, edges=True)) == facts(found)
    assert sum(item.call_count or 0 for item in found) == len(records)


@given(calls)
def test_the_edges_of_the_edges_are_the_same_edges(records: list[TraceRecord]) -> None:
    once = {item.digest for item in deduplicate(records, DEFINITIONS, edges=True)}
    chosen = [record for record in records if deduplicate([record], DEFINITIONS)[0].digest in once]
    assert {item.digest for item in deduplicate(chosen, DEFINITIONS, edges=True)} == once


@given(calls, calls)
def test_new_traffic_makes_no_shape_family_disappear(old: list[TraceRecord], new: list[TraceRecord]) -> None:
    before = {(item.definition_digest, family_of(item)) for item in deduplicate(old, DEFINITIONS)}
    after = {(item.definition_digest, family_of(item)) for item in deduplicate(old + new, DEFINITIONS)}
    assert before <= after


def test_dense_calls_are_equal_only_at_the_same_axis_point() -> None:
    workloads = deduplicate([dense_call(7)] * 3 + [dense_call(8)], DEFINITIONS)
    assert sorted((item.axes["M"], item.call_count) for item in workloads) == [(7, 3), (8, 1)]


def test_one_real_call_near_the_middle_stands_for_ragged_calls_of_one_kind() -> None:
    (workload,) = deduplicate([ragged_call((lens, 40)) for lens in (33, 38, 39, 40, 48)], DEFINITIONS)
    assert workload.call_count == 5
    assert workload.inputs["kv_last_page_len"].model_dump()["params"]["lengths"] in ([39, 40], [40, 40], [38, 40])


def test_with_edges_the_smallest_and_the_largest_call_stand_beside_the_middle_one() -> None:
    records = [ragged_call((lens, 40)) for lens in (33, 36, 44, 48, 48, 60)]
    found = deduplicate(records, DEFINITIONS, edges=True)
    by_size = sorted((item.axes["num_kv_indices"], item.call_count) for item in found)
    assert by_size[0][0] == min(record.axes["num_kv_indices"] for record in records)
    assert by_size[-1][0] == max(record.axes["num_kv_indices"] for record in records)
    assert len(by_size) == 3
    assert sum(count or 0 for _, count in by_size) == 6
    assert len(deduplicate(records, DEFINITIONS)) == 1


def test_ragged_calls_of_another_spread_or_batch_stay_apart() -> None:
    workloads = deduplicate([ragged_call((30, 30)), ragged_call((1, 59)), ragged_call((20, 20, 20))], DEFINITIONS)
    assert len(workloads) == 3


def test_a_decode_and_a_prefill_of_equal_token_counts_differ() -> None:
    workloads = deduplicate([token_call((5, 6, 7, 8)), token_call((90, 4, 300, 17))], DEFINITIONS)
    assert sorted(item.structure_class for item in workloads) == ["positions:runs", "positions:scattered"]


def test_a_workload_is_bound_to_its_definition_and_carries_all_recipes() -> None:
    (workload,) = deduplicate([ragged_call((3, 9))], DEFINITIONS)
    assert workload.definition_digest == paged(4).digest
    assert list(workload.inputs) == list(paged(4).inputs)


def test_sampling_parameters_are_part_of_the_call() -> None:
    def call(k: int) -> TraceRecord:
        return TraceRecord(
            definition=sampling().name, axes={"batch_size": 2}, structure={"top_k": (k, k)}, scalars={"top_p": 0.9}
        )

    assert len(deduplicate([call(1), call(50), call(50)], DEFINITIONS)) == 2


def test_structure_classes_are_words() -> None:
    assert structure_class({"kv_lens": (100, 120, 90)}) == "kv_lens:~128/even"
    assert structure_class({"kv_lens": (1, 1, 1000)}) == "kv_lens:~512/skewed"
    assert structure_class({}) == ""


def test_strided_calls_are_left_out_by_name_and_not_mixed_with_others() -> None:
    strided = dense_call(7).model_copy(update={"layout": {"A": TensorLayout(dtype="float32", contiguous=False)}})
    workloads = deduplicate([dense_call(7), strided], DEFINITIONS)
    assert sorted(item.tags for item in workloads) == [(), (STRIDED,)]
    selected = select(workloads, 8)
    assert [item.tags for item in selected.kept] == [()]
    assert [(item.share, item.reason) for item in selected.left_out] == [(0.5, "its calls pass non-contiguous tensors")]

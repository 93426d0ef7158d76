"""Collect: every line ends in exactly one place, and a bad one says why in words."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.collect import MAX_REASON_CHARS, Collected, parse_calls
from tests.core.world import gemm, paged

DEFINITIONS = {item.name: item for item in (gemm(constraints=("M <= 4096",)), paged(4))}
GOOD = {"definition": "gemm_n8_k4", "axes": {"M": 7}}
PAGED = {
    "definition": paged(4).name,
    "axes": {"batch_size": 2, "num_pages": 10, "len_indptr": 3, "num_kv_indices": 4},
    "structure": {"kv_lens": [5, 8]},
}


def parse(*rows: object) -> Collected:
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    return parse_calls([("calls.jsonl", place, text) for place, text in enumerate(texts, 1)], DEFINITIONS)


def with_axes(row: dict, **axes: object) -> dict:
    return row | {"axes": row["axes"] | axes}


def test_good_calls_become_records() -> None:
    collected = parse(GOOD, PAGED)
    assert collected.quarantined == []
    assert [record.axes for record in collected.records] == [GOOD["axes"], PAGED["axes"]]
    assert collected.records[1].structure == {"kv_lens": (5, 8)}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{", "not JSON"),
        ("", "the line is blank"),
        ("[" * 100_000, "nested too deeply"),
        ([1, 2], "expected a JSON object, found list"),
        ({"axes": {}}, "the call names no definition"),
        (GOOD | {"definition": "nobody"}, "unknown definition 'nobody'"),
        (GOOD | {"axes": {}}, "axis M of gemm_n8_k4 is not bound"),
        (GOOD | {"axes": [7]}, "the call binds no axes"),
        (with_axes(GOOD, M=-1), "axis M is -1, below zero"),
        (with_axes(GOOD, M=1.5), "axis M is 1.5, not a whole number"),
        (with_axes(GOOD, M=True), "axis M is True, not a whole number"),
        (with_axes(GOOD, X=1), "gemm_n8_k4 has no axis X"),
        (with_axes(GOOD, N=9), "axis N is 9, but gemm_n8_k4 fixes it at 8"),
        (with_axes(GOOD, M=2**40), "axis M is larger than any tensor"),
        (GOOD | {"scalars": {"seed": 2**60}}, "scalar seed is beyond what JSON numbers hold exactly"),
        (GOOD | {"scalars": {"seed": 10**400}}, "scalar seed is beyond"),
        (PAGED | {"structure": {"kv_lens": [5, 2**62]}}, "kv_lens holds 4611686018427387904"),
        (with_axes(GOOD, M=5000), "constraint 'M <= 4096'"),
        (GOOD | {"extra": 1}, "extra: Extra inputs are not permitted"),
        (with_axes(PAGED, num_kv_indices=5), "axis num_kv_indices is 5, but the structure implies 4"),
        (with_axes(PAGED, batch_size=3), "axis batch_size is 3, but the structure implies 2"),
        (with_axes(PAGED, num_pages=1), "num_pages is 1, but one sequence needs 2 pages"),
        (PAGED | {"structure": {"kv_lens": [5, -8]}}, "kv_lens holds the negative value -8"),
        (PAGED | {"structure": {}}, "cannot invent kv_indptr, kv_indices, kv_last_page_len"),
        ('{"definition": "gemm_n8_k4", "axes": {"M": 7}, "scalars": {"eps": NaN}}', "scalar eps is nan, not a finite"),
        ('{"definition": "gemm_n8_k4", "axes": {"M": 7}, "scalars": {"eps": 1e999}}', "scalar eps is inf"),
    ],
)
def test_a_bad_call_is_quarantined_with_its_line_and_reason(row: object, reason: str) -> None:
    collected = parse(GOOD, row, GOOD)
    assert len(collected.records) == 2
    (bad,) = collected.quarantined
    assert (bad.file, bad.line, bad.kind) == ("calls.jsonl", 2, "call")
    assert reason in bad.reason
    assert len(bad.reason) <= MAX_REASON_CHARS


anything = st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3))
axes = st.dictionaries(st.sampled_from("MNX"), st.integers())
lines = st.one_of(
    st.text(max_size=20),
    st.just(json.dumps(GOOD)),
    st.just(json.dumps(PAGED)),
    anything.map(json.dumps),
    st.fixed_dictionaries({"definition": st.sampled_from([*DEFINITIONS, "x"]), "axes": axes}).map(json.dumps),
)


@given(st.lists(lines, max_size=20))
def test_accepted_and_quarantined_add_up_to_the_lines_read(texts: list[str]) -> None:
    collected = parse(*texts)
    assert collected.read_count == len(texts)
    bad = [row.line for row in collected.quarantined]
    assert bad == sorted(set(bad))


def parsing_s(count: int) -> float:
    """CPU time of ``count`` lines, half of them unlike all others, half of them alike."""
    stamped = [GOOD | {"source": {"run": f"r{place}"}} for place in range(count // 2)]
    texts = [json.dumps(row) for row in stamped] + [json.dumps(PAGED)] * (count // 2)
    started = time.process_time()
    collected = parse(*texts)
    assert len(collected.records) == count
    return time.process_time() - started


def test_fifty_thousand_lines_cost_little_more_a_line_than_five_thousand() -> None:
    # Ten times as much if every line costs the same, a hundred times if each is held against all others.
    assert parsing_s(50_000) < 40 * min(parsing_s(5_000) for _ in range(3))

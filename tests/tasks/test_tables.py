"""What pandera rejects at the calls' boundary is quarantined with its place; everything else goes on."""

from fib_core.collect import Collected
from schemas.trace import TraceRecord
from tasks.tables import rejected_calls


def test_a_call_that_breaks_the_table_is_quarantined_at_every_line_where_it_stands() -> None:
    good = TraceRecord(definition="gemm", axes={"M": 1})
    # Built past validation, as a reader with a defect would.
    bad = TraceRecord.model_construct(definition="", axes={"M": 2}, structure={}, scalars={}, layout={}, values={})
    collected = Collected([good, bad, good, bad], [], [("a.jsonl", 1), ("a.jsonl", 2), ("b.jsonl", 1), ("b.jsonl", 9)])
    rejected = rejected_calls(collected)
    assert {position: (row.file, row.line) for position, row in rejected.items()} == {
        1: ("a.jsonl", 2), 3: ("b.jsonl", 9),
    }  # fmt: skip
    assert all("definition" in row.reason for row in rejected.values())


def test_good_calls_are_left_alone() -> None:
    good = TraceRecord(definition="gemm", axes={"M": 1})
    assert rejected_calls(Collected([good], [], [("a.jsonl", 1)])) == {}

"""Tables: what records become as rows, and what no table lets through."""

import math

import pytest

from fib_core import dispatch
from schemas.decision import Decision
from schemas.evaluation import Evaluation, Job
from schemas.index import IndexEntry
from schemas.rows import (
    DECISION_DOCUMENT_ONLY,
    EVALUATION_DOCUMENT_ONLY,
    call_rows,
    decision_rows,
    evaluation_rows,
    index_rows,
    workload_rows,
)
from schemas.snapshot import Placed
from schemas.tables import (
    CallTable,
    DecisionTable,
    EvaluationTable,
    IndexEntryTable,
    WorkloadTable,
    columns_of,
    validated,
)
from schemas.trace import TraceRecord
from schemas.workload import Workload
from tests.core.road import walk
from tests.core.world import DEVICE, World, gemm, solution

WALKED = walk(World({"old": 1.0, "fast": 0.5}), [solution("fast", gemm())])
INDEX = dispatch.build(WALKED.snapshot, WALKED.decisions, WALKED.solutions, "quick", DEVICE, {}, WALKED.measured)
ROWS = {
    CallTable: call_rows([TraceRecord(definition="gemm_n8_k4", axes={"M": 3})] * 2),
    WorkloadTable: workload_rows(WALKED.snapshot),
    EvaluationTable: evaluation_rows({item.digest: item for item in WALKED.screened}),
    DecisionTable: decision_rows(WALKED.decisions),
    IndexEntryTable: index_rows(INDEX),
}
MODELS = list(ROWS)


@pytest.mark.parametrize("model", MODELS)
def test_rows_made_from_records_all_pass(model) -> None:
    frame, rejected = validated(model, ROWS[model])
    assert rejected == []
    assert frame.height == len(ROWS[model]) > 0
    assert frame.columns == list(columns_of(model))


@pytest.mark.parametrize("model", MODELS)
def test_an_empty_table_keeps_its_columns_and_types(model) -> None:
    frame, rejected = validated(model, [])
    assert (frame.height, rejected) == (0, [])
    assert dict(frame.schema) == {name: dtype() for name, dtype in columns_of(model).items()}


def fields(record, *without: str) -> set[str]:
    return set(record.model_fields) - {"schema_version", *without}


def test_columns_are_the_records_fields_and_what_is_said_to_be_derived() -> None:
    assert set(columns_of(CallTable)) == fields(TraceRecord)
    placed = fields(Workload) | fields(Placed, "workload")
    assert set(columns_of(WorkloadTable)) == placed | {"workload_digest"}
    judged = fields(Job, "library_versions") | (fields(Evaluation) - EVALUATION_DOCUMENT_ONLY)
    assert set(columns_of(EvaluationTable)) == judged | {"evaluation_digest", "median_us"}
    decided = fields(Decision) - DECISION_DOCUMENT_ONLY
    assert set(columns_of(DecisionTable)) == decided | {"decision_digest", "ratio", "p_holm"}
    guarded = fields(IndexEntry, "interval", "evidence")
    assert set(columns_of(IndexEntryTable)) == guarded | {"definition_digest", "low", "high"}


def first(model, **changes) -> dict:
    return ROWS[model][0] | changes


def promoted(**changes) -> dict:
    return next(row for row in ROWS[DecisionTable] if row["verdict"] == "promoted") | changes


def served(**changes) -> dict:
    return next(row for row in ROWS[IndexEntryTable] if row["solution_digest"]) | changes


def kin(one: dict, other: dict) -> bool:
    """True if a rule across rows would bind the two."""
    return any(name in one and one[name] == other.get(name) for name in ("key", "family"))


@pytest.mark.parametrize(
    ("model", "row", "reason"),
    [
        (WorkloadTable, first(WorkloadTable, weight=math.inf), "weight is finite"),
        (WorkloadTable, first(WorkloadTable, weight=-0.5), "weight: greater_than_or_equal_to(0)"),
        (WorkloadTable, first(WorkloadTable, split="stress", weight=0.5), "stress weighs nothing"),
        (WorkloadTable, first(WorkloadTable, split="test"), "split: isin"),
        (WorkloadTable, first(WorkloadTable, call_count=0), "call_count: greater_than_or_equal_to(1)"),
        (WorkloadTable, first(WorkloadTable, call_count=1.5), "call_count: 1.5 is not Int64"),
        (WorkloadTable, first(WorkloadTable, call_count=True), "call_count: True is not Int64"),
        (WorkloadTable, first(WorkloadTable, family=None), "family: not_nullable"),
        (WorkloadTable, first(WorkloadTable, workload_digest="abc"), "workload_digest: str_matches"),
        (WorkloadTable, first(WorkloadTable, extra=1), "unknown ['extra']"),
        (WorkloadTable, {"weight": 1.0}, "columns differ: missing ['axes'"),
        (EvaluationTable, first(EvaluationTable, median_us=math.inf), "median_us is finite"),
        (EvaluationTable, first(EvaluationTable, median_us=math.nan), "median_us"),
        (EvaluationTable, first(EvaluationTable, median_us=0.0), "median_us: greater_than(0)"),
        (EvaluationTable, first(EvaluationTable, median_us=None), "a median needs samples"),
        (EvaluationTable, first(EvaluationTable, status="TIMEOUT", reason=""), "says why"),
        (EvaluationTable, first(EvaluationTable, status="OK"), "status: isin"),
        (DecisionTable, promoted(solution_digest=None), "a solution is named exactly where one is promoted"),
        (DecisionTable, promoted(verdict="kept_incumbent"), "a solution is named exactly where one is promoted"),
        (DecisionTable, promoted(ratio=1.05), "meets its minimum effect"),
        (DecisionTable, promoted(ratio=None), "meets its minimum effect"),
        (DecisionTable, promoted(p_holm=0.06), "meets its minimum effect and its alpha"),
        (DecisionTable, promoted(failed='["gates_speed"]'), "meets its minimum effect"),
        (DecisionTable, promoted(alpha=1.0), "alpha: less_than(1)"),
        (IndexEntryTable, served(ratio=None), "carries its finite evidence"),
        (IndexEntryTable, served(high=math.inf), "carries its finite evidence"),
        (IndexEntryTable, served(low=99.0), "carries its finite evidence"),
        (IndexEntryTable, served(reason=""), "reason: str_length"),
        (CallTable, first(CallTable, axes="[]"), "axes: str_startswith"),
    ],
)
def test_a_bad_row_is_rejected_with_its_place_and_reason_and_the_good_ones_stay(model, row, reason: str) -> None:
    good = [item for item in ROWS[model][1:] if not kin(item, row)]
    assert good
    frame, (rejected,) = validated(model, [*good, row])
    assert frame.height == len(good)
    assert rejected.position == len(good)
    assert rejected.row == row
    assert reason in rejected.reason


@pytest.mark.parametrize("model", [WorkloadTable, EvaluationTable, DecisionTable, IndexEntryTable])
def test_the_same_thing_twice_is_rejected(model) -> None:
    _, rejected = validated(model, [*ROWS[model], ROWS[model][0]])
    assert [item.position for item in rejected] == [0, len(ROWS[model])]


def test_a_family_on_two_sides_is_rejected_whole() -> None:
    train = [row for row in ROWS[WorkloadTable] if row["split"] == "train"]
    family = train[0]["family"]
    leaked = first(WorkloadTable, family=family, split="holdout", workload_digest="sha256:" + "a" * 64)
    _, rejected = validated(WorkloadTable, [*train, leaked])
    assert {item.row["family"] for item in rejected} == {family}
    assert all("a family lies on one side" in item.reason for item in rejected)

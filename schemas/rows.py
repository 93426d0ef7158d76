"""Records as table rows: one function per table, field names kept, nested fields as canonical JSON text.

In: records. Out: plain dicts that ``schemas.tables.validated`` accepts. Imports neither polars nor pandera.
"""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from schemas.base import Digest, Record
from schemas.canonical import canonical_bytes
from schemas.decision import Decision
from schemas.evaluation import Evaluation
from schemas.index import DispatchIndex
from schemas.snapshot import Snapshot
from schemas.trace import TraceRecord

Row = dict[str, Any]
# Decision fields that stay in the document only: where and against whom it was measured.
DECISION_DOCUMENT_ONLY = {"schema_version", "forms", "spread", "device_ids", "timer", "control_us"}
# Evaluation fields that stay in the document only: the same for a whole run, or too deep for a table.
EVALUATION_DOCUMENT_ONLY = {
    "schema_version", "job", "warmup_us", "second_clock_us", "survivors", "reference_precision",
    "cache_policy", "input_sets", "sample_draws",
    "sample_power", "sample_coarse_power", "environment", "conditions", "limits",
    "build_s", "first_call_us", "first_shape_us", "roofline_us",
}  # fmt: skip


def call_rows(records: Iterable[TraceRecord]) -> list[Row]:
    """Rows of CallTable."""
    return [_flat(record) for record in records]


def workload_rows(snapshot: Snapshot) -> list[Row]:
    """Rows of WorkloadTable."""
    return [
        _flat(item.workload) | {"workload_digest": item.workload.digest}
        | {"split": item.split, "family": item.family, "weight": item.weight}
        for item in snapshot.workloads
    ]  # fmt: skip


def evaluation_rows(evaluations: Mapping[Digest, Evaluation]) -> list[Row]:
    """Rows of EvaluationTable, from digest -> Evaluation."""
    return [_evaluation_row(digest, item) for digest, item in evaluations.items()]


def decision_rows(decisions: Iterable[Decision]) -> list[Row]:
    """Rows of DecisionTable."""
    return [_decision_row(item) for item in decisions]


def index_rows(index: DispatchIndex) -> list[Row]:
    """Rows of IndexEntryTable."""
    rows: list[Row] = []
    for block in index.definitions:
        for entry in block.entries:
            row = _flat(entry, {"evidence"}) | {"definition_digest": block.definition_digest}
            row.pop("interval")
            low, high = entry.interval or (None, None)
            rows.append(row | {"low": low, "high": high})
    return rows


def _evaluation_row(digest: Digest, item: Evaluation) -> Row:
    row = _flat(item, EVALUATION_DOCUMENT_ONLY) | _flat(item.job, {"library_versions"})
    middle = median(item.samples_us) if item.samples_us else None
    job = item.job
    unsaid = {"campaign": job.campaign, "driver": job.driver, "timing_version": job.timing_version}
    return row | unsaid | {"evaluation_digest": digest, "median_us": middle}


def _decision_row(item: Decision) -> Row:
    chosen = next((found for found in item.estimates if found.solution_digest == item.solution_digest), None)
    figures = {"ratio": chosen.ratio if chosen else None, "p_holm": chosen.p_holm if chosen else None}
    named = {"campaign": item.campaign, "causes": _text(list(item.causes)), "decision_digest": item.digest}
    return _flat(item, DECISION_DOCUMENT_ONLY) | named | figures


def _flat(record: Record, leave_out: Iterable[str] = ()) -> Row:
    body = record.model_dump(mode="json", exclude=set(leave_out))
    return {name: _text(value) if isinstance(value, dict | list) else value for name, value in body.items()}


def _text(value: Any) -> str:
    return canonical_bytes(value).decode()

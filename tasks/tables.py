"""Every table boundary passes here: rows are checked by their pandera contract before anybody uses or shows them.

In: records. Out: rows for people. A row of our own that breaks its contract is a defect and stops the stage with its
reason: such a number must not be decided on. Rows that came from outside are quarantined earlier, with file and line.
"""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from fib_core.collect import Collected
from fib_core.errors import ContractError
from schemas import rows as flat
from schemas.decision import KeyBox
from schemas.evaluation import Evaluation
from schemas.index import DispatchIndex, IndexEntry, KeptKey
from schemas.snapshot import Snapshot
from schemas.trace import QuarantinedRow

Row = dict[str, Any]
LOG_SHOWN_CHARS = 400


def require(table: str, rows: list[Row]) -> None:
    """Check rows against ``schemas.tables.<table>``; raises ContractError naming the first bad row and its reason."""
    from schemas import tables

    _, rejected = tables.validated(getattr(tables, table), rows)
    if rejected:
        first = rejected[0]
        raise ContractError(
            f"{len(rejected)} of {len(rows)} rows break {table}; the first is row {first.position}: {first.reason}"
        )


def rejected_calls(collected: Collected) -> dict[int, QuarantinedRow]:
    """Position -> quarantined row of every accepted call that breaks CallTable; equal calls are checked once."""
    from schemas import tables

    listed = collected.records
    # Equal lines share one frozen record, so identity is enough to check each call once.
    distinct = list({id(record): record for record in listed}.values())
    _, rejected = tables.validated(tables.CallTable, flat.call_rows(distinct))
    reasons = {id(distinct[item.position]): item.reason for item in rejected}
    return {
        position: QuarantinedRow(file=file, line=line, kind="call", reason=reasons[id(listed[position])])
        for position, (file, line) in enumerate(collected.places)
        if id(listed[position]) in reasons
    }


def snapshot_rows(snapshot: Snapshot) -> list[Row]:
    """Checked, then one row per placed workload for people."""
    require("WorkloadTable", flat.workload_rows(snapshot))
    names = {definition.digest: definition.name for definition in snapshot.definitions}
    return [
        {
            "definition": names[placed.workload.definition_digest],
            "axes": ", ".join(f"{axis}={size}" for axis, size in placed.workload.axes.items()),
            "structure": placed.workload.structure_class,
            "split": placed.split,
            "weight": placed.weight,
            "calls": placed.workload.call_count,
            "workload": placed.workload.digest,
        }
        for placed in snapshot.workloads
    ]


def evaluation_rows(evaluations: Iterable[Evaluation], names: Mapping[str, str]) -> list[Row]:
    """Checked, then one row per verdict for people; ``names`` maps solution digests to names."""
    listed = list(evaluations)
    require("EvaluationTable", flat.evaluation_rows({item.digest: item for item in listed}))
    return [
        {
            "solution": names.get(item.job.solution_digest, item.job.solution_digest),
            "role": item.job.role,
            "status": item.status.value,
            "rule": item.rule,
            "median_us": median(item.samples_us) if item.samples_us else None,
            "max_abs_error": max((f.max_abs for f in item.errors.values() if f.max_abs is not None), default=None),
            "reason": item.reason,
            "log": item.log[-LOG_SHOWN_CHARS:],
            "workload": item.job.workload_digest,
        }
        for item in listed
    ]


def index_rows(index: DispatchIndex) -> list[Row]:
    """Checked, then one row per entry and per kept key for people."""
    require("IndexEntryTable", flat.index_rows(index))
    names = {item.solution_digest: item.name for item in index.solutions}
    entries = [(block, _entry_row(entry, names)) for block in index.definitions for entry in block.entries]
    kept = [(block, _kept_row(item)) for block in index.definitions for item in block.kept]
    return [{"definition": block.name} | row for block, row in (*entries, *kept)]


def _entry_row(entry: IndexEntry, names: Mapping[str, str]) -> Row:
    return {
        "key": ", ".join(entry.covered_keys),
        "box": _intervals(entry.box),
        "serves": names.get(entry.solution_digest or "", "incumbent"),
        "ratio": entry.ratio,
        "interval": list(entry.interval) if entry.interval else None,
        "rounds": entry.rounds,
        "reason": entry.reason,
    }


def _kept_row(kept: KeptKey) -> Row:
    rounds = kept.evidence.rounds if kept.evidence else 0
    figures: Row = {"ratio": None, "interval": None, "rounds": rounds, "reason": kept.reason}
    return {"key": kept.key, "box": _intervals(kept.box), "serves": "incumbent", **figures}


def _intervals(box: KeyBox) -> str:
    return ", ".join(f"{name} {low}..{high}" for name, (low, high) in box.axes.items())

"""What a dataset folder held, item by item: accepted, waiting for a blob, or quarantined with place and reason.

In: nothing but records that an adapter read. Out: the accounting that ``fib check`` prints. No I/O.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas.definition import Definition
from schemas.solution import Solution
from schemas.trace import PublicTrace, QuarantinedRow
from schemas.workload import Workload

COUNTED = ("definition", "workload", "trace", "solution", "call")


@dataclass(frozen=True)
class WorkloadRow:
    """A workload line as it came (``row``), bound to its contract (``workload``); ``missing`` lists absent blobs."""

    file: str
    line: int
    row: PublicTrace
    workload: Workload
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class TraceRow:
    """A line with somebody else's evaluation; evidence to look at, never a verdict of ours."""

    file: str
    line: int
    trace: PublicTrace


@dataclass(frozen=True)
class Dataset:
    """Everything under one root. ``read`` counts what was met, ``accepted`` what passed, both by kind."""

    root: Path
    definitions: dict[str, Definition] = field(default_factory=dict)
    solutions: dict[str, Solution] = field(default_factory=dict)
    workloads: tuple[WorkloadRow, ...] = ()
    traces: tuple[TraceRow, ...] = ()
    quarantined: tuple[QuarantinedRow, ...] = ()
    incumbents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    call_logs: tuple[Path, ...] = ()
    read: Mapping[str, int] = field(default_factory=dict)
    accepted: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def ready(self) -> tuple[WorkloadRow, ...]:
        """Workload rows that can be run here: every blob is present."""
        return tuple(row for row in self.workloads if not row.missing)

    @property
    def missing_blobs(self) -> dict[str, int]:
        """Absent blob paths with the number of workload rows that wait for each."""
        return dict(Counter(path for row in self.workloads for path in row.missing))

    def workloads_of(self, definition: str) -> tuple[Workload, ...]:
        """Bound, runnable workloads of one definition in file order."""
        return tuple(row.workload for row in self.ready if row.row.definition == definition)


def quarantined_by_kind(dataset: Dataset) -> Counter[str]:
    """Quarantined items by kind; a blob's fault is its workload's."""
    return Counter("workload" if row.kind == "blob" else row.kind for row in dataset.quarantined)


def check_report(dataset: Dataset) -> dict[str, Any]:
    """The ``fib check --json`` document; accepted + missing + quarantined equals what was read."""
    bad = quarantined_by_kind(dataset)
    waiting = sum(1 for row in dataset.workloads if row.missing)
    return {
        "definitions": {"accepted": dataset.accepted.get("definition", 0), "quarantined": bad["definition"]},
        "workloads": {
            "accepted": dataset.accepted.get("workload", 0) - waiting,
            "missing_blob": waiting,
            "quarantined": bad["workload"],
        },
        "traces": {"accepted": dataset.accepted.get("trace", 0), "quarantined": bad["trace"]},
        "problems": [{"file": row.file, "line": row.line, "reason": row.reason} for row in dataset.quarantined],
    }


def grouped_problems(dataset: Dataset) -> list[tuple[str, str, int, str]]:
    """(kind, first reason, count, first place) of problems that differ in digits only; commonest first."""
    groups: dict[tuple[str, str], list[QuarantinedRow]] = {}
    for row in dataset.quarantined:
        groups.setdefault((row.kind, _shape_of(row.reason)), []).append(row)
    rows = [(kind, same[0].reason, len(same), _place(same[0])) for (kind, _), same in groups.items()]
    return sorted(rows, key=lambda item: (-item[2], item[3]))


def _place(row: QuarantinedRow) -> str:
    return f"{row.file}:{row.line}" if row.line else row.file


def _shape_of(reason: str) -> str:
    """The reason without its digits, so that rows which differ by a number only are one group."""
    return "".join("#" if letter.isdigit() else letter for letter in reason)

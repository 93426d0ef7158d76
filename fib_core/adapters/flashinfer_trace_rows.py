"""Rows of workload and trace files: told apart by content, checked against their definition, bound or quarantined.

In: parsed JSON and the definitions that were read. Out: WorkloadRow or TraceRow, or the sentences that say why not.
Knows no file access except blobs.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fib_core.adapters.flashinfer_trace_blobs import BlobFolder
from fib_core.adapters.flashinfer_trace_checks import Findings, axis_problems, check_row
from fib_core.adapters.flashinfer_trace_files import Malformed
from fib_core.adapters.flashinfer_trace_reasons import found, joined, parsed
from fib_core.adapters.flashinfer_trace_sol import is_bare, with_generated, wrapped
from fib_core.inspect_dataset import TraceRow, WorkloadRow
from schemas.definition import Definition
from schemas.evaluation import PUBLIC_STATUS
from schemas.trace import PublicTrace
from schemas.workload import PublicWorkload, Workload

RowKind = Literal["workload", "trace"]
_STATUSES = frozenset(PUBLIC_STATUS.values())
_CORRECTNESS = ("max_relative_error", "max_absolute_error")
_PERFORMANCE = ("latency_ms", "reference_latency_ms", "speedup_factor")


class Rejected(Exception):
    """This row is quarantined for these reasons."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True)
class Contracts:
    """Definitions to read rows against. ``drafts``: quarantined ones as far as understood (None: not at all)."""

    accepted: Mapping[str, Definition]
    drafts: Mapping[str, tuple[str, Definition | None]]
    digests: Mapping[str, str]

    def find(self, name: str) -> tuple[Definition | None, list[str]]:
        """The contract, and what is wrong with it."""
        if name in self.accepted:
            return self.accepted[name], []
        if name in self.drafts:
            place, draft = self.drafts[name]
            return draft, [f"its definition is quarantined ({place})"]
        return None, [f"definition: no file under definitions/ declares {name[:80]!r}"]


def normalised(raw: Any, path: Path, contracts: Contracts) -> dict[str, Any]:
    """The public wrapper, with older spellings of "no solution, no evaluation" (``""`` and ``{}``) as null."""
    if not isinstance(raw, dict):
        raise Rejected(f"expected an object, found {found(raw)}")
    row = wrapped(raw, path, contracts.accepted) if is_bare(raw) else dict(raw)
    if row.get("solution") == "":
        row["solution"] = None
    if row.get("evaluation") == {}:
        row["evaluation"] = None
    return row


def kind_of(row: dict[str, Any]) -> RowKind:
    """A row without solution and evaluation is a workload, wherever it lies."""
    return "workload" if row.get("solution") is None and row.get("evaluation") is None else "trace"


def read_workload(row: dict[str, Any], place: tuple[str, int], contracts: Contracts, blobs: BlobFolder) -> WorkloadRow:
    """Bind a workload row to its contract; raises Rejected."""
    name = row.get("definition")
    definition, problems = contracts.find(name) if isinstance(name, str) and name else (None, [])
    record = _public_row(_expanded(row, definition))
    if definition is None:
        raise Rejected(joined(problems))
    findings = check_row(definition, record.workload, blobs)
    if findings.problems or problems:
        raise Rejected(joined(findings.problems + problems))
    bound = _bound(definition, contracts.digests[definition.name], record.workload, findings)
    return WorkloadRow(*place, record, bound, tuple(dict.fromkeys(findings.missing)))


def read_trace(row: dict[str, Any], place: tuple[str, int], contracts: Contracts) -> TraceRow:
    """Check an evaluated row; raises Rejected."""
    problems = evaluation_problems(row.get("solution"), row.get("evaluation"))
    name = row.get("definition")
    definition, unknown = contracts.find(name) if isinstance(name, str) and name else (None, [])
    record = parsed(PublicTrace, _expanded(row, definition))
    if isinstance(record, str):
        raise Rejected(joined([*problems, record]))
    if definition is not None:
        problems += axis_problems(definition, record.workload.axes)
    if problems or unknown:
        raise Rejected(joined(problems + unknown))
    return TraceRow(*place, record)


def evaluation_problems(solution: Any, evaluation: Any) -> list[str]:
    """What the public evaluation needs; NaN and infinity may be numbers or strings."""
    if solution is None:
        return ["solution: missing although the row has an evaluation"]
    if not isinstance(evaluation, dict):
        return [f"evaluation: expected an object, found {found(evaluation)}"]
    status = evaluation.get("status")
    problems = [] if status in _STATUSES else [f"evaluation.status: {found(status)} is not a public status"]
    environment = evaluation.get("environment")
    if not isinstance(environment, dict) or not isinstance(environment.get("hardware"), str):
        problems.append("evaluation.environment.hardware: missing")
    needs = {"PASSED": ("correctness", "performance"), "INCORRECT_NUMERICAL": ("correctness",)}.get(str(status), ())
    for part, figures in (("correctness", _CORRECTNESS), ("performance", _PERFORMANCE)):
        problems += _figure_problems(part, figures, evaluation.get(part), part in needs)
    return problems


def _figure_problems(part: str, figures: tuple[str, ...], values: Any, needed: bool) -> list[str]:
    if values is None:
        return [f"evaluation.{part}: missing"] if needed else []
    if not isinstance(values, dict):
        return [f"evaluation.{part}: expected an object, found {found(values)}"]
    return [
        f"evaluation.{part}.{name}: expected a number >= 0, found {found(values.get(name))}"
        for name in figures
        if not _is_figure(values.get(name), part == "correctness")
    ]


def _is_figure(value: Any, may_be_nan: bool) -> bool:
    if value in ("NaN", "Infinity"):
        return may_be_nan
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _expanded(row: dict[str, Any], definition: Definition | None) -> dict[str, Any]:
    """Generated inputs made concrete, where the contract is known well enough."""
    workload = row.get("workload")
    if definition is None or not isinstance(workload, dict):
        return row
    try:
        return row | {"workload": with_generated(definition, workload)}
    except Malformed as error:
        raise Rejected(error.reason) from error


def _public_row(row: dict[str, Any]) -> PublicTrace:
    record = parsed(PublicTrace, row)
    if isinstance(record, str):
        raise Rejected(record)
    return record


def _bound(definition: Definition, digest: str, row: PublicWorkload, findings: Findings) -> Workload:
    """Var axes only, every input with a recipe in call order, blobs by content; a captured scalar becomes its value."""
    inputs: dict[str, Any] = {}
    for name in definition.inputs:
        inputs[name] = findings.scalars.get(name) or row.inputs.get(name) or {"type": "random"}
    return Workload(
        definition_digest=digest,
        axes={name: row.axes[name] for name in definition.var_axes},
        inputs=inputs,
        blob_digests={name: value for name, value in findings.digests.items() if name not in findings.scalars},
        uuid=row.uuid,
        **_facts(row),
    )


def _facts(row: PublicWorkload) -> dict[str, Any]:
    """Our extension keys of a row, where they hold what we would have written."""
    extra = row.model_extra or {}
    facts: dict[str, Any] = {}
    count, tags, structure = extra.get("call_count"), extra.get("tags"), extra.get("structure_class")
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        facts["call_count"] = count
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        facts["tags"] = tuple(tags)
    if isinstance(structure, str):
        facts["structure_class"] = structure
    return facts

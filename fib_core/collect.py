"""Room 1, collect: raw call-log lines in, TraceRecords out; what cannot be used is quarantined with place and reason.

Reads no files (a TraceSource does) and knows nothing of workloads or splits. Every line ends in exactly one of the two
lists, so the counts add up to what was read.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fib_core.errors import ContractError, UnsupportedInput
from fib_core.workloads.constraints import violated
from fib_core.workloads.ragged import contradictions
from fib_core.workloads.structure import recipes_for
from schemas.definition import AxisConst, Definition
from schemas.trace import QuarantinedRow, TraceRecord

MAX_REASON_CHARS = 300
REMEMBERED_LINES = 4096
LARGEST_SIZE = 2**31 - 1
LARGEST_EXACT = 2**53 - 1


@dataclass(frozen=True)
class Collected:
    """What the lines held. ``len(records) + len(quarantined)`` is the number of lines read."""

    records: list[TraceRecord]
    quarantined: list[QuarantinedRow]
    places: list[tuple[str, int]] = field(default_factory=list)
    """(file, 1-based line) of each record, so that a later check can say where."""

    @property
    def read_count(self) -> int:
        """Lines read."""
        return len(self.records) + len(self.quarantined)


def parse_calls(lines: Iterable[tuple[str | Path, int, str]], definitions: Mapping[str, Definition]) -> Collected:
    """Parse (file, 1-based line, text) triples against the definitions, by name. Blank lines count as bad rows."""
    reader = _Reader(definitions)
    # Serving repeats itself: equal lines are parsed once and share one frozen record.
    record_of = lru_cache(maxsize=REMEMBERED_LINES)(reader.record)
    collected = Collected([], [])
    for file, line, text in lines:
        try:
            collected.records.append(record_of(text))
            collected.places.append((str(file), line))
        except ContractError as error:
            reason = error.reason[:MAX_REASON_CHARS]
            collected.quarantined.append(QuarantinedRow(file=str(file), line=line, kind="call", reason=reason))
    return collected


@dataclass
class _Reader:
    """Parses one line at a time; remembers which definitions' inputs it could invent."""

    definitions: Mapping[str, Definition]
    inventable: dict[tuple[str, ...], str | None] = field(default_factory=dict)

    def record(self, text: str) -> TraceRecord:
        """One line as a TraceRecord; raises ContractError with a plain sentence."""
        body = _json_object(text)
        definition = self._definition(body)
        _check_axes(definition, body.get("axes"))
        record = _validated(body)
        _check_scalars(record)
        _check_structure(record)
        problems = contradictions(definition, record.axes, record.structure)
        if problems:
            raise ContractError(problems[0])
        sizes = definition.const_axes | record.axes if definition.constraints else record.axes
        broken = violated(definition.constraints, sizes)
        if broken:
            raise ContractError(f"constraint {broken!r} of {definition.name} does not hold for axes {record.axes}")
        self._check_inputs(definition, record)
        return record

    def _definition(self, body: dict[str, Any]) -> Definition:
        name = body.get("definition")
        if not isinstance(name, str):
            raise ContractError("the call names no definition")
        if name not in self.definitions:
            raise ContractError(f"unknown definition {name!r}")
        return self.definitions[name]

    def _check_inputs(self, definition: Definition, record: TraceRecord) -> None:
        signature = (definition.name, *sorted(record.structure), "|", *sorted(record.scalars))
        if signature not in self.inventable:
            self.inventable[signature] = _uninventable(definition, record)
        reason = self.inventable[signature]
        if reason is not None:
            raise ContractError(reason)


def _uninventable(definition: Definition, record: TraceRecord) -> str | None:
    try:
        recipes_for(definition, record.axes, record.structure, record.scalars)
    except UnsupportedInput as error:
        return error.reason
    return None


def _json_object(text: str) -> dict[str, Any]:
    if not text.strip():
        raise ContractError("the line is blank")
    try:
        body = json.loads(text)
    except ValueError as error:
        raise ContractError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise ContractError("not JSON that a call could be: nested too deeply") from error
    if not isinstance(body, dict):
        raise ContractError(f"expected a JSON object, found {type(body).__name__}")
    return body


def _check_axes(definition: Definition, axes: Any) -> None:
    if not isinstance(axes, dict):
        raise ContractError("the call binds no axes")
    for name in definition.var_axes:
        if name not in axes:
            raise ContractError(f"axis {name} of {definition.name} is not bound")
    for name, value in axes.items():
        _check_axis(definition, name, value)


def _check_axis(definition: Definition, name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ContractError(f"axis {name} is {value!r}, not a whole number")
    if value < 0:
        raise ContractError(f"axis {name} is {value}, below zero")
    if value > LARGEST_SIZE:
        raise ContractError(f"axis {name} is larger than any tensor here can be ({LARGEST_SIZE})")
    if name not in definition.axes:
        raise ContractError(f"{definition.name} has no axis {name}")
    axis = definition.axes[name]
    fixed = axis.value if isinstance(axis, AxisConst) else value
    if fixed != value:
        raise ContractError(f"axis {name} is {value}, but {definition.name} fixes it at {fixed}")


def _validated(body: dict[str, Any]) -> TraceRecord:
    try:
        record = TraceRecord.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ContractError(f"{place}: {first['msg']}") from error
    return record


def _check_scalars(record: TraceRecord) -> None:
    for name, value in record.scalars.items():
        if isinstance(value, int) and abs(value) > LARGEST_EXACT:
            raise ContractError(f"scalar {name} is beyond what JSON numbers hold exactly ({LARGEST_EXACT})")
        if not math.isfinite(value):
            raise ContractError(f"scalar {name} is {value}, not a finite number")


def _check_structure(record: TraceRecord) -> None:
    for name, values in record.structure.items():
        if values and max(values) > LARGEST_SIZE:
            raise ContractError(f"{name} holds {max(values)}, more than any tensor here can hold ({LARGEST_SIZE})")

"""What was observed: our raw call record, and the public trace row (a public evaluation or a bare workload)."""

from typing import Any, Literal

from schemas.base import Natural, NonEmpty, PublicRecord, Record
from schemas.workload import PublicWorkload


class TensorLayout(Record):
    """Layout facts of one argument as the engine passed it."""

    dtype: NonEmpty
    contiguous: bool = True
    strides: tuple[int, ...] | None = None


class TraceRecord(Record):
    """One observed call. Raw: it has no identity, many are equal and that is the point.

    ``axes`` binds every var axis. ``structure`` holds the integer facts that shapes do not show, by name: per-sequence
    lengths (``kv_lens``, ``qo_lens``, tokens), ``positions`` ... ``scalars`` are the Python-scalar inputs.
    """

    definition: NonEmpty
    axes: dict[NonEmpty, Natural]
    structure: dict[NonEmpty, tuple[int, ...]] = {}
    scalars: dict[NonEmpty, bool | int | float] = {}
    layout: dict[NonEmpty, TensorLayout] = {}
    values: dict[NonEmpty, dict[str, float]] = {}
    source: dict[NonEmpty, str] = {}


class PublicTrace(PublicRecord):
    """One line of a public JSONL file: a workload trace has neither solution nor evaluation."""

    definition: NonEmpty
    workload: PublicWorkload
    solution: NonEmpty | None = None
    evaluation: dict[str, Any] | None = None


class QuarantinedRow(Record):
    """Bad data with its place and its reason; good rows of the same file go on. ``line`` is 1-based, 0 = whole file."""

    file: str
    line: Natural
    kind: Literal["definition", "workload", "solution", "trace", "call", "blob"]
    reason: NonEmpty

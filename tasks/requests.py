"""Limits of a visit: sizes are predicted before anything is allocated.

In: settings, a definition and its workloads. Out: Limits. Pure arithmetic over shapes.
"""

import math
from collections.abc import Iterable

from schemas.definition import Definition
from schemas.evaluation import Limits
from schemas.workload import Workload
from tasks.settings import Settings

ITEM_BYTES = {
    "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "float4_e2m1": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "bool": 1,
}  # fmt: skip
HEADROOM_BYTES = 2 << 30
"""Beyond the predicted need (contract: predicted need + 2 GiB)."""

WORKING_COPIES = 4
"""Inputs, a private copy, an fp32 upcast of half-width tensors, outputs: what an honest PyTorch form holds at once."""


def tensor_bytes(definition: Definition, axes: dict[str, int]) -> int:
    """Bytes of all inputs and outputs of one call."""
    total = 0
    for name, spec in (definition.inputs | definition.outputs).items():
        shape = definition.shape_of(name, axes)
        total += math.prod(shape) * ITEM_BYTES[spec.dtype] if shape is not None else 0
    return total


def limits_for(settings: Settings, definition: Definition, workloads: Iterable[Workload]) -> Limits:
    """Visit and build time from the settings, memory from the largest workload."""
    largest = max((tensor_bytes(definition, workload.axes) for workload in workloads), default=0)
    return Limits(
        visit_s=settings.visit_limit_s,
        build_s=settings.build_limit_s,
        memory_bytes=WORKING_COPIES * largest + HEADROOM_BYTES,
    )

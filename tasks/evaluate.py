"""Judge one solution on a definition's workloads, here and now: no flow, no store, no decision.

In: a definition, a solution and maybe workload rows. Out: Evaluations. The same device path as the pipeline.
"""

import secrets
from collections.abc import Sequence
from pathlib import Path

from fib_core.errors import ContractError, UnsupportedInput
from fib_core.jobs import COARSE_DRAWS
from fib_core.workloads.structure import recipes_for, small_valid_set
from schemas.definition import Definition
from schemas.evaluation import Evaluation
from schemas.solution import Solution
from schemas.visit import Contestant, VisitRequest
from schemas.workload import PublicWorkload, Workload
from tasks.requests import limits_for
from tasks.settings import Settings
from tasks.wiring import open_device

SAMPLE_COUNT = 10


def evaluate(
    settings: Settings,
    definition: Definition,
    solution: Solution,
    workloads: Sequence[Workload],
    blob_root: Path | None,
    visit_limit_s: float,
) -> tuple[Evaluation, ...]:
    """Visit every workload once; raises ContractError for bad inputs, DeviceError for the machine's fault."""
    from fib_core.errors import DeviceError

    entrant = Contestant(role="candidate", solution=solution, solution_digest=solution.digest_for(definition.digest))
    request = VisitRequest(
        definition=definition,
        workloads=tuple(workloads),
        contestants=(entrant,),
        stage="screen",
        round=0,
        seed=secrets.token_hex(16),
        warmup_count=1,
        sample_count=SAMPLE_COUNT,
        input_sets=SAMPLE_COUNT + 1,
        sampling_draws=COARSE_DRAWS,
        limits=limits_for(settings, definition, workloads).model_copy(update={"visit_s": visit_limit_s}),
        blob_root=str(blob_root) if blob_root is not None else None,
    )
    with open_device(settings) as device:
        result = device.visit(request)
    if result.fault is None:
        return result.evaluations
    if result.fault.cause == "bad_input":
        raise ContractError(result.fault.detail, str(blob_root or ""))
    raise DeviceError(f"the visit was spoiled by the machine ({result.fault.cause}): {result.fault.detail}")


def bind_rows(definition: Definition, rows: Sequence[PublicWorkload]) -> list[Workload]:
    """Public rows under this contract."""
    return [
        Workload(definition_digest=definition.digest, axes=row.axes, inputs=row.inputs, uuid=row.uuid) for row in rows
    ]


def invented_workloads(definition: Definition) -> list[Workload]:
    """A small valid set; raises UnsupportedInput naming the structural inputs that cannot be invented."""
    points = small_valid_set(definition)
    if not points:
        structural = [name for name, spec in definition.inputs.items() if spec.dtype.startswith(("int", "bool"))]
        raise UnsupportedInput(
            f"{definition.name}: no workload can be invented; its structural inputs are "
            f"{', '.join(structural) or 'none, but its constraints exclude every small size'}. Give --workloads FILE"
        )
    return [
        Workload(
            definition_digest=definition.digest,
            axes=point.axes,
            inputs=recipes_for(definition, point.axes, point.structure, point.scalars),
            tags=("invented",),
        )
        for point in points
    ]

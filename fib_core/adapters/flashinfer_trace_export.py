"""Our records in the public words: bound workloads and evaluations as flashinfer-trace rows.

In: definitions, workloads, solutions, evaluations. Out: PublicTrace rows for :func:`write_dataset`. Pure; no files.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from schemas.definition import Definition
from schemas.evaluation import Evaluation, Status, public_evaluation
from schemas.solution import Solution
from schemas.trace import PublicTrace
from schemas.workload import PublicWorkload, Workload


def workload_row(definition: Definition, workload: Workload) -> PublicTrace:
    """A workload as a public row; a missing uuid is made of its digest, count and tags become unknown keys."""
    return PublicTrace(
        definition=definition.name, workload=_public_workload(workload), solution=None, evaluation=None
    )


def evaluation_rows(
    definition: Definition,
    evaluations: Iterable[Evaluation],
    workloads: Mapping[str, Workload],
    solutions: Mapping[str, Solution],
    reference_us: Mapping[str, float],
) -> list[PublicTrace]:
    """Evaluations of one definition as public rows; keys of the mappings are digests.

    ``reference_us`` is what the speed-up is against, per workload digest. A pass that was never timed has no place in
    the public form (it demands latencies) and is left out rather than given a number.
    """
    rows = []
    for item in evaluations:
        workload, solution = workloads[item.job.workload_digest], solutions[item.job.solution_digest]
        body = public_evaluation(item, reference_us.get(item.job.workload_digest))
        if item.status is Status.PASSED and body["performance"] is None:
            continue
        rows.append(
            PublicTrace(
                definition=definition.name,
                workload=_public_workload(workload),
                solution=solution.name,
                evaluation=_without_nan(body),
            )
        )
    return rows


def _public_workload(workload: Workload) -> PublicWorkload:
    facts: dict[str, Any] = {}
    if workload.call_count is not None:
        facts["call_count"] = workload.call_count
    if workload.tags:
        facts["tags"] = list(workload.tags)
    if workload.structure_class:
        facts["structure_class"] = workload.structure_class
    name = workload.uuid or str(UUID(hex=workload.digest[7:39]))
    return PublicWorkload(axes=workload.axes, inputs=workload.inputs, uuid=name, **facts)


def _without_nan(value: Any) -> Any:
    """The public spelling of what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value

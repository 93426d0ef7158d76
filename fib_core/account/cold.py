"""The cold path, apart from every other time: what a solution costs before it is warm.

In: Evaluations. Out: one row per solution and definition. Build (compiler and loading), first call of a process, first
call on a workload by a process that had served another before. Never part of a sample, a ratio or a score.
"""

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from schemas.base import Digest
from schemas.evaluation import Evaluation
from schemas.snapshot import Snapshot

COLUMNS = (
    "definition", "solution", "role", "build_s", "first_call_us", "worst_first_call_us", "first_shape_us",
    "worst_first_shape_us", "worst_shape", "processes", "shapes",
)  # fmt: skip


def cold_rows(
    evaluations: Iterable[Evaluation], snapshot: Snapshot, names: Mapping[Digest, str]
) -> list[dict[str, Any]]:
    """Medians and worst cases in the units of the names, slowest first call first; None where nobody measured it.

    ``names``: of solutions by digest; who is not in it is shown by digest.
    """
    definitions = {item.digest: item.name for item in snapshot.definitions}
    groups: dict[tuple[Digest, Digest], list[Evaluation]] = {}
    for item in evaluations:
        if item.first_shape_us is not None and item.job.role != "control":
            groups.setdefault((item.job.definition_digest, item.job.solution_digest), []).append(item)
    axes = {item.workload.digest: item.workload.axes for item in snapshot.workloads}
    rows = [
        {"definition": definitions.get(definition, definition), "solution": names.get(digest, digest)}
        | _figures(items, axes)
        for (definition, digest), items in groups.items()
    ]
    return sorted(rows, key=lambda row: (-(row["worst_first_call_us"] or 0.0), row["definition"], row["solution"]))


def _figures(items: list[Evaluation], axes: Mapping[Digest, Mapping[str, int]]) -> dict[str, Any]:
    builds = [item.build_s for item in items if item.build_s is not None]
    calls = [item.first_call_us for item in items if item.first_call_us is not None]
    # A process's first call on its first workload also pays for the process: it is no first shape here.
    shapes = [(item.first_shape_us or 0.0, item) for item in items if item.first_call_us is None]
    worst = max(shapes, key=lambda each: each[0], default=None)
    return {
        "role": items[0].job.role,
        "build_s": median(builds) if builds else None,
        "first_call_us": median(calls) if calls else None,
        "worst_first_call_us": max(calls, default=None),
        "first_shape_us": median(value for value, _ in shapes) if shapes else None,
        "worst_first_shape_us": worst[0] if worst else None,
        "worst_shape": _axes(axes.get(worst[1].job.workload_digest, {})) if worst else None,
        "processes": len(calls),
        "shapes": len({item.job.workload_digest for item in items}),
    }


def _axes(axes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in axes.items())

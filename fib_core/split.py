"""Room 3, split: weighted Workloads in, a frozen Snapshot (train / holdout / stress) out.

A family (axis class with length structure) falls on its side by a keyed hash alone, so growing traffic moves nobody.
Knows nothing of candidates or times.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from fib_core.workloads.families import (
    FAMILIES_FOR_HOLDOUT,
    HOLDOUT_SHARE,
    Sides,
    family_digest,
    family_name,
    sides_for,
)
from fib_core.workloads.structure import recipes_for, stress_points
from schemas.base import Digest
from schemas.definition import Definition
from schemas.numerics import POLICY_VERSION
from schemas.snapshot import Placed, Snapshot, Split
from schemas.workload import RandomInput, Workload

__all__ = [
    "FAMILIES_FOR_HOLDOUT", "HOLDOUT_SHARE", "STRESS", "Sides", "family_of", "sides_of", "split", "stress_workloads",
]  # fmt: skip

STRESS = "stress"

Weights = Literal["call_counts", "none"]


def family_of(workload: Workload) -> str:
    """Axis class and length structure: the unit that is never divided between sides."""
    return family_name(workload.axes, workload.structure_class)


def stress_workloads(definition: Definition, limit: int = 2) -> list[Workload]:
    """Awkward calls that no log need contain, from the constraints; raises UnsupportedInput if inputs are unknown.

    The first of them once more with padded inputs, where the definition lets callers hand over slices.
    """
    found = [
        Workload(
            definition_digest=definition.digest,
            axes=point.axes,
            inputs=recipes_for(definition, point.axes, point.structure, point.scalars),
            structure_class=STRESS,
            tags=(STRESS,),
        )
        for point in stress_points(definition, limit)
    ]
    return [*found, *(_padded(item, definition.strided) for item in found[:1] if definition.strided)]


def _padded(workload: Workload, names: Sequence[str]) -> Workload:
    recipes = workload.inputs
    slices = {
        name: recipe.model_copy(update={"layout": "padded"})
        for name, recipe in recipes.items()
        if name in names and isinstance(recipe, RandomInput)
    }
    return workload.model_copy(update={"inputs": recipes | slices})


def split(
    workloads: Sequence[Workload],
    definitions: Mapping[str, Definition],
    incumbents: Mapping[Digest, Sequence[Digest]],
    key: str,
    weights: Weights,
    stress: Sequence[Workload] = (),
    earlier: Sides | None = None,
) -> Snapshot:
    """Freeze the dataset. ``key`` is the secret of the hash; ``earlier`` (from :func:`sides_of`) keeps known families.

    Workloads tagged ``stress`` go to the stress side. Equal workloads are placed once; weights sum to 1 per definition.
    """
    traffic = _distinct(item for item in workloads if STRESS not in item.tags)
    known = {item.digest for item in traffic}
    awkward = [item for item in _distinct([*workloads, *stress]) if STRESS in item.tags and item.digest not in known]
    by_definition: defaultdict[Digest, list[Workload]] = defaultdict(list)
    for workload in traffic:
        by_definition[workload.definition_digest].append(workload)
    placed = [item for members in by_definition.values() for item in _place(members, key, weights, earlier or {})]
    placed += [Placed(workload=item, split="stress", family=family_of(item), weight=0.0) for item in awkward]
    return Snapshot(
        definitions=tuple(definitions[name] for name in sorted(definitions)),
        workloads=tuple(sorted(placed, key=lambda item: (item.workload.definition_digest, item.workload.digest))),
        incumbents={digest: tuple(chosen) for digest, chosen in sorted(incumbents.items())},
        weights=weights,
        split_key=key,
        policy_version=POLICY_VERSION,
    )


def sides_of(snapshot: Snapshot) -> dict[str, Split]:
    """Family digest -> side, to be handed to the next split as ``earlier``."""
    return {
        family_digest(item.workload.definition_digest, item.family): item.split
        for item in snapshot.workloads
        if item.split != "stress"
    }


def _place(members: list[Workload], key: str, weights: Weights, earlier: Sides) -> list[Placed]:
    families = {family_of(member) for member in members}
    sides = sides_for(members[0].definition_digest, families, key, earlier)
    counted = weights == "call_counts" and all(member.call_count for member in members)
    shares = [float(member.call_count or 1) if counted else 1.0 for member in members]
    # Without counts every workload weighs 1: no traffic is claimed. With counts the weight is a share.
    total = sum(shares) if counted else 1.0
    return [
        Placed(workload=member, split=sides[family_of(member)], family=family_of(member), weight=share / total)
        for member, share in zip(members, shares, strict=True)
    ]


def _distinct(workloads: Iterable[Workload]) -> list[Workload]:
    """One of each digest; counts of equal workloads add up."""
    groups: defaultdict[str, list[Workload]] = defaultdict(list)
    for workload in workloads:
        groups[workload.digest].append(workload)
    return [_merged(members) for _, members in sorted(groups.items())]


def _merged(members: list[Workload]) -> Workload:
    counts = [member.call_count for member in members if member.call_count is not None]
    total = sum(counts) if counts else None
    return members[0] if len(members) == 1 else members[0].model_copy(update={"call_count": total})

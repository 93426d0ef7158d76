"""Room 2, dedup: many TraceRecords in, few weighted Workloads out.

Dense calls are equal if their axis points are; ragged calls if axis classes, batch and length structure are, and one
real call stands for its group. Order-free and idempotent; call counts add up to the records. Knows nothing of splits.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from fib_core.axisclass import axis_class, class_key
from fib_core.structure import recipes_for
from schemas.definition import Definition
from schemas.trace import TraceRecord
from schemas.workload import Workload

STRIDED = "layout=strided"
_LENGTHS = ("kv_lens", "qo_lens")
FAMILIES_FIRST = 6
"""Families that are represented before any gets a second workload: five make a holdout, one more gives it company."""
# Coefficient of variation of the lengths: nearly equal, mixed, dominated by a few.
_CV_BUCKETS = ((0.25, "even"), (0.75, "mixed"))


class _Point(NamedTuple):
    """One distinct call, hashable; everything sorted by name."""

    definition: str
    axes: tuple[tuple[str, int], ...]
    structure: tuple[tuple[str, tuple[int, ...]], ...]
    scalars: tuple[tuple[str, bool | int | float], ...]
    strided: bool


@dataclass(frozen=True)
class LeftOut:
    """A workload that is not benchmarked, its share of the definition's calls, and why."""

    workload: Workload
    share: float
    reason: str


@dataclass(frozen=True)
class Selected:
    """Workloads that go on, and all others by name: nothing disappears silently."""

    kept: list[Workload]
    left_out: list[LeftOut]


def deduplicate(records: Iterable[TraceRecord], definitions: Mapping[str, Definition]) -> list[Workload]:
    """One Workload per group of equal calls, sorted by definition name and digest; call counts sum to the records."""
    counts = Counter(_point(record) for record in records)
    groups: defaultdict[tuple[Any, ...], list[_Point]] = defaultdict(list)
    for point in counts:
        groups[_group(point)].append(point)
    named = [(key[0], _workload(points, counts, definitions[key[0]])) for key, points in groups.items()]
    return [workload for _, workload in sorted(named, key=lambda item: (item[0], item[1].digest))]


def select(workloads: Sequence[Workload], limit: int) -> Selected:
    """At most ``limit`` workloads per definition; strided calls are left out, since inputs are made contiguous.

    First the most frequent workload of each of the most frequent shape families (a split needs several), then the
    most frequent of the rest; ties by digest.
    """
    by_definition: defaultdict[str, list[Workload]] = defaultdict(list)
    for workload in workloads:
        by_definition[workload.definition_digest].append(workload)
    kept: list[Workload] = []
    left_out: list[LeftOut] = []
    for members in by_definition.values():
        total = sum(_count(member) for member in members)
        usable = _ranked([member for member in members if STRIDED not in member.tags])
        kept += usable[:limit]
        late = [(member, f"beyond the {limit} most frequent workloads of its definition") for member in usable[limit:]]
        strided = [(member, "its calls pass non-contiguous tensors") for member in members if STRIDED in member.tags]
        left_out += [LeftOut(member, _count(member) / total, reason) for member, reason in late + strided]
    return Selected(kept, left_out)


def _ranked(members: list[Workload]) -> list[Workload]:
    by_count = sorted(members, key=lambda member: (-_count(member), member.digest))
    families: defaultdict[tuple[str, str], list[Workload]] = defaultdict(list)
    for member in by_count:
        families[class_key(member.axes), member.structure_class].append(member)
    frequent = sorted(families.values(), key=lambda family: (-sum(map(_count, family)), family[0].digest))
    first = [family[0] for family in frequent[:FAMILIES_FIRST]]
    return [*first, *(member for member in by_count if member not in first)]


def structure_class(structure: Mapping[str, Sequence[int]]) -> str:
    """Name of a length structure: mean class and spread per kind of length; runs or scattered for positions."""
    return ";".join(_class_of(name, structure[name]) for name in sorted(structure) if structure[name])


def _class_of(name: str, seen: Sequence[int]) -> str:
    if name in ("positions", "pos_ids"):
        steps = sum(after == before + 1 for before, after in pairwise(seen))
        return f"{name}:{'runs' if 2 * steps >= len(seen) > 1 else 'scattered'}"
    mean = sum(seen) / len(seen)
    if name not in _LENGTHS or mean == 0:
        return f"{name}:~{axis_class(math.ceil(mean))}"
    spread = math.sqrt(sum((value - mean) ** 2 for value in seen) / len(seen)) / mean
    bucket = next((label for limit, label in _CV_BUCKETS if spread <= limit), "skewed")
    return f"{name}:~{axis_class(math.ceil(mean))}/{bucket}"


def _point(record: TraceRecord) -> _Point:
    return _Point(
        record.definition,
        tuple(sorted(record.axes.items())),
        tuple(sorted(record.structure.items())),
        tuple(sorted(record.scalars.items())),
        any(not layout.contiguous for layout in record.layout.values()),
    )


def _group(point: _Point) -> tuple[Any, ...]:
    structure = dict(point.structure)
    lengths = next((structure[name] for name in _LENGTHS if name in structure), None)
    shape = point.axes if lengths is None else (class_key(dict(point.axes)), len(lengths))
    return (point.definition, shape, structure_class(structure), point.scalars, point.strided)


def _workload(points: list[_Point], counts: Mapping[_Point, int], definition: Definition) -> Workload:
    chosen = _medoid(points)
    axes, structure, scalars = dict(chosen.axes), dict(chosen.structure), dict(chosen.scalars)
    return Workload(
        definition_digest=definition.digest,
        axes=axes,
        inputs=recipes_for(definition, axes, structure, scalars),
        structure_class=structure_class(structure),
        call_count=sum(counts[point] for point in points),
        tags=(STRIDED,) if chosen.strided else (),
    )


def _medoid(points: list[_Point]) -> _Point:
    """The real call nearest to the group's mean; counts do not vote, so more of the same traffic changes nothing."""
    ordered = sorted(points)
    features = [_features(point) for point in ordered]
    centre = [math.fsum(column) / len(features) for column in zip(*features, strict=True)]
    distances = [math.fsum((a - b) ** 2 for a, b in zip(row, centre, strict=True)) for row in features]
    return ordered[distances.index(min(distances))]


def _features(point: _Point) -> list[float]:
    sizes = [float(value) for _, value in point.axes]
    for _, seen in point.structure:
        sizes += [float(sum(seen)), float(max(seen, default=0))]
    return [math.log1p(size) for size in sizes]


def _count(workload: Workload) -> int:
    return workload.call_count or 1

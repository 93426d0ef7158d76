"""Room 2, dedup: many TraceRecords in, few weighted Workloads out.

Dense calls are equal if their axis points are; ragged calls if axis classes, batch and length structure are, and one
real call stands for its group (three with ``edges``). Order-free and idempotent; call counts add up to the records.
Knows nothing of splits.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fib_core.workloads.axisclass import class_key
from fib_core.workloads.families import LENGTHS, log_size, structure_class
from fib_core.workloads.selection import STRIDED, LeftOut, Selected, select
from fib_core.workloads.structure import recipes_for
from schemas.definition import Definition
from schemas.trace import TraceRecord
from schemas.workload import Workload

__all__ = ["STRIDED", "LeftOut", "Selected", "deduplicate", "select", "structure_class"]


class _Point(NamedTuple):
    """One distinct call, hashable; everything sorted by name."""

    definition: str
    axes: tuple[tuple[str, int], ...]
    structure: tuple[tuple[str, tuple[int, ...]], ...]
    scalars: tuple[tuple[str, bool | int | float], ...]
    strided: bool


def deduplicate(
    records: Iterable[TraceRecord], definitions: Mapping[str, Definition], edges: bool = False
) -> list[Workload]:
    """One Workload per group of equal calls, sorted by definition name and digest; call counts sum to the records.

    With ``edges`` a group of ragged calls is represented by its smallest and its largest call too: a box can only reach
    from one measured call to another. Every call counts for the one that is most like it.
    """
    counts = Counter(_point(record) for record in records)
    groups: defaultdict[tuple[Any, ...], list[_Point]] = defaultdict(list)
    for point in counts:
        groups[_group(point)].append(point)
    named = [
        (key[0], _workload(chosen, sum(counts[point] for point in points), definitions[key[0]]))
        for key, members in groups.items()
        for chosen, points in (_by_edges(members) if edges else {_medoid(members): members}).items()
    ]
    return [workload for _, workload in sorted(named, key=lambda item: (item[0], item[1].digest))]


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
    lengths = next((structure[name] for name in LENGTHS if name in structure), None)
    shape = point.axes if lengths is None else (class_key(dict(point.axes)), len(lengths))
    return (point.definition, shape, structure_class(structure), point.scalars, point.strided)


def _workload(chosen: _Point, count: int, definition: Definition) -> Workload:
    axes, structure, scalars = dict(chosen.axes), dict(chosen.structure), dict(chosen.scalars)
    return Workload(
        definition_digest=definition.digest,
        axes=axes,
        inputs=recipes_for(definition, axes, structure, scalars),
        structure_class=structure_class(structure),
        call_count=count,
        tags=(STRIDED,) if chosen.strided else (),
    )


def _by_edges(points: list[_Point]) -> dict[_Point, list[_Point]]:
    """The calls of one group, each with the representative that is most like it: smallest, middle or largest."""
    ordered = sorted(points, key=lambda point: (log_size(size for _, size in point.axes), point))
    low, *between, high = ordered if len(ordered) > 1 else ordered * 2
    if low.axes == high.axes:
        return {_medoid(points): points}
    chosen = [low, *([_medoid(between)] if between else []), high]
    features = [_features(point) for point in chosen]
    found: dict[_Point, list[_Point]] = {point: [point] for point in chosen}
    for point in ordered:
        if point not in found:
            distances = [_distance(_features(point), other) for other in features]
            found[chosen[distances.index(min(distances))]].append(point)
    return found


def _medoid(points: list[_Point]) -> _Point:
    """The real call nearest to the group's mean; counts do not vote, so more of the same traffic changes nothing."""
    ordered = sorted(points)
    features = [_features(point) for point in ordered]
    centre = [math.fsum(column) / len(features) for column in zip(*features, strict=True)]
    distances = [_distance(row, centre) for row in features]
    return ordered[distances.index(min(distances))]


def _features(point: _Point) -> list[float]:
    sizes = [float(value) for _, value in point.axes]
    for _, seen in point.structure:
        sizes += [float(sum(seen)), float(max(seen, default=0))]
    return [math.log1p(size) for size in sizes]


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum((a - b) ** 2 for a, b in zip(one, other, strict=True))

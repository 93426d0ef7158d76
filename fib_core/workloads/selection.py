"""From many weighted workloads to the few that are measured; everything else is named with its reason.

In: workloads of dedup, the key of the split, the traffic. Out: kept and left out, all of them. Sides are looked at,
since a box needs held-out calls in its gaps, but nobody is placed here. Knows no times.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fib_core.index.guard import mean_lengths
from fib_core.workloads.choice import Candidates, choose
from fib_core.workloads.families import CORE, family_name, log_size, sides_for
from fib_core.workloads.reach import Sizes as Rows
from schemas.trace import TraceRecord
from schemas.workload import Workload

STRIDED = "layout=strided"
POOL_MAX = 80
"""Candidates of one definition; more are thinned to the edges and the favourites of the heaviest families."""
TRAFFIC_MAX = 2000
"""Distinct calls that are looked at; of more, every n-th in order stands for its neighbours."""

Sizes = tuple[int, ...]


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


def select(
    workloads: Sequence[Workload],
    limit: int,
    key: str = "",
    decided: int | None = None,
    records: Iterable[TraceRecord] = (),
) -> Selected:
    """At most ``limit`` workloads per definition; strided calls are left out, since inputs are made contiguous.

    Those stay between which most of the traffic lies, with holdouts of the split's ``key`` in the gaps. Traffic are the
    ``records`` of the one definition, or the workloads' own counts. If only ``decided`` of them will be timed in
    rounds, those are tagged ``CORE``.
    """
    by_definition: defaultdict[str, list[Workload]] = defaultdict(list)
    for workload in workloads:
        by_definition[workload.definition_digest].append(workload)
    contiguous = [item for item in records if all(layout.contiguous for layout in item.layout.values())]
    kept: list[Workload] = []
    left_out: list[LeftOut] = []
    for members in by_definition.values():
        usable = sorted((member for member in members if STRIDED not in member.tags), key=lambda item: item.digest)
        chosen = _chosen(usable, limit, key, decided, contiguous) if usable else []
        kept += chosen
        left_out += _left_out(members, {member.digest for member in chosen}, limit)
    return Selected(kept, left_out)


def _left_out(members: Sequence[Workload], kept: set[str], limit: int) -> Iterator[LeftOut]:
    total = sum(map(_count, members))
    late = f"not among the {limit} workloads between which most calls of its definition lie"
    for member in members:
        strided = STRIDED in member.tags
        if strided or member.digest not in kept:
            reason = "its calls pass non-contiguous tensors" if strided else late
            yield LeftOut(member, _count(member) / total, reason)


def _chosen(
    members: Sequence[Workload], limit: int, key: str, decided: int | None, records: Sequence[TraceRecord]
) -> list[Workload]:
    """The core first; tagged, if not all will be decided."""
    sides = sides_for(members[0].definition_digest, {_family(member) for member in members}, key)
    pool = _pool(members)
    names = sorted(frozenset.intersection(*(frozenset(member.axes) for member in members)))
    points = [tuple(item.axes[name] for name in names) for item in pool]
    traffic = _thinned(_traffic(members, records, names))
    found = choose(
        Candidates(
            sizes=_rows(points, len(names)),
            lengths=_lengths(points, names),
            counts=[_count(item) for item in pool],
            families=[_family(item) for item in pool],
            holdout=[sides[_family(item)] == "holdout" for item in pool],
            traffic=_rows(list(traffic), len(names)),
            traffic_lengths=_lengths(list(traffic), names),
            traffic_counts=list(traffic.values()),
        ),
        limit,
        decided,
    )
    core = [pool[place] for place in found.core]
    if decided is not None:
        core = [item.model_copy(update={"tags": (*item.tags, CORE)}) for item in core]
    return [*core, *(pool[place] for place in found.more)]


def _traffic(members: Sequence[Workload], records: Sequence[TraceRecord], names: Sequence[str]) -> dict[Sizes, int]:
    """Distinct calls by their sizes, in order, with their counts."""
    counts: Counter[Sizes] = Counter()
    for item in records:
        counts[tuple(item.axes[name] for name in names)] += 1
    for member in () if records else members:
        counts[tuple(member.axes[name] for name in names)] += _count(member)
    return dict(sorted(counts.items()))


def _thinned(traffic: Mapping[Sizes, int]) -> dict[Sizes, int]:
    stride = -(-len(traffic) // TRAFFIC_MAX)
    if stride <= 1:
        return dict(traffic)
    rows = list(traffic.items())
    groups = [rows[start : start + stride] for start in range(0, len(rows), stride)]
    return {group[len(group) // 2][0]: sum(count for _, count in group) for group in groups}


def _pool(members: Sequence[Workload]) -> list[Workload]:
    """All of them if they are few; else the smallest, largest and most frequent of the heaviest families."""
    if len(members) <= POOL_MAX:
        return list(members)
    families: defaultdict[str, list[Workload]] = defaultdict(list)
    for member in members:
        families[_family(member)].append(member)
    heaviest = sorted(families.values(), key=lambda family: (-sum(map(_count, family)), family[0].digest))
    found = {item.digest: item for family in heaviest[: POOL_MAX // 3] for item in _edges(family)}
    return [found[digest] for digest in sorted(found)]


def _edges(family: Sequence[Workload]) -> list[Workload]:
    ordered = sorted(family, key=lambda item: (log_size(item.axes.values()), item.digest))
    return [ordered[0], ordered[-1], max(ordered, key=lambda item: (_count(item), item.digest))]


def _lengths(points: Sequence[Sizes], names: Sequence[str]) -> Rows:
    """Classes of the mean lengths, a column per total; none of a call without sequences."""
    means = [mean_lengths(dict(zip(names, point, strict=True))) for point in points]
    totals = sorted(set().union(*means))
    return _rows([tuple(item.get(name, 0) for name in totals) for item in means], len(totals))


def _rows(points: Sequence[Sizes], width: int) -> Rows:
    return np.array(points, dtype=np.int64).reshape(len(points), width)


def _family(workload: Workload) -> str:
    return family_name(workload.axes, workload.structure_class)


def _count(workload: Workload) -> int:
    return workload.call_count or 1

"""Where a promotion may be served: measured points, and gaps between them that a holdout point vouches for.

In: all Decisions and placed workloads of one definition. Out: pairwise disjoint boxes with one winner each, every box a
(part of a) hull of two measured points of its winner: nothing lies beyond the outermost points. Knows nothing of times,
stores or indexes.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from fib_core.errors import ContractError
from fib_core.index.hulls import Hull, Point, disjoint, hull_of, neighbours, pairs, within
from fib_core.workloads.axisclass import class_key
from fib_core.workloads.constraints import violated
from schemas.base import Digest
from schemas.decision import Decision
from schemas.definition import Definition
from schemas.snapshot import Placed

SMALL_GAP = 64
"""Whole-numbered points that are looked at one by one to see whether a gap holds any possible call."""


class LearntBox(NamedTuple):
    """Closed interval per var axis, and the promoted decisions, all of one winner, whose points bound or fill it."""

    axes: dict[str, tuple[int, int]]
    decisions: tuple[Decision, ...]


def learn(
    decisions: Sequence[Decision], placed: Sequence[Placed], definition: Definition | None = None
) -> list[LearntBox]:
    """Boxes of the promoted decisions of ONE definition, pairwise disjoint, sorted; the order of inputs is irrelevant.

    A gap between two neighbouring points of one winner is covered only if no key of another verdict reaches into their
    hull, and a holdout point lies there that was timed as a gate of either decision. With ``definition``, a gap in
    which its constraints allow no call needs no holdout. Raises ContractError for two decisions about one key.
    """
    evidence = _Evidence.of(decisions, placed)
    found: list[LearntBox] = []
    fields = {winner: _Field.of(winner, evidence, definition) for winner in evidence.winners}
    for winner, field in fields.items():
        others = [field for name, field in fields.items() if name != winner]
        found += [_box(evidence, field, part, whole) for part, whole in disjoint(field.hulls(others))]
    return sorted(found, key=lambda box: sorted(box.axes.items()))


@dataclass(frozen=True)
class _Evidence:
    """Who was decided where: decision per measured train point, points of every verdict, gates."""

    names: tuple[str, ...]
    measured: dict[Point, Decision]
    unmeasured: dict[Point, Decision | None]
    gates: dict[Point, set[str]]
    holdout: dict[Point, set[str]]
    decisions: dict[str, Decision]

    @classmethod
    def of(cls, decisions: Sequence[Decision], placed: Sequence[Placed]) -> "_Evidence":
        by_key = {item.key: item for item in decisions}
        if len(by_key) != len(decisions):
            raise ContractError("two decisions about one key")
        # A row may name sizes that the contract fixes; only what every workload binds can guard.
        bound = [item.workload.axes.keys() for item in placed]
        names = tuple(sorted(frozenset.intersection(*map(frozenset, bound)))) if bound else ()
        gated: defaultdict[Digest, set[str]] = defaultdict(set)
        for decision in decisions:
            for digest in decision.workloads:
                gated[digest].add(decision.key)
        found = cls(names, {}, {}, defaultdict(set), defaultdict(set), by_key)
        for item in placed:
            found._add(item, gated[item.workload.digest])
        return found

    def _add(self, item: Placed, keys: set[str]) -> None:
        point = tuple(item.workload.axes[name] for name in self.names)
        if item.split != "train":
            self.gates[point] |= keys
            if item.split == "holdout":
                self.holdout[point] |= keys
            return
        decision = self.decisions.get(class_key(item.workload.axes))
        if decision is not None and decision.key in keys:
            self.measured[point] = decision
        else:
            self.unmeasured[point] = decision

    @property
    def winners(self) -> list[Digest]:
        """Solutions that were promoted somewhere."""
        return sorted({item.solution_digest for item in self.measured.values() if _won(item) and item.solution_digest})

    def points_of(self, winner: Digest) -> list[Point]:
        """Measured train points where ``winner`` was promoted, in order."""
        return sorted(point for point, item in self.measured.items() if _winner_of(item) == winner)

    def foreign_to(self, winner: Digest) -> list[Hull]:
        """Where something else was decided: hulls of keys that ``winner`` did not win, and gates of such keys only."""
        keys: defaultdict[str, list[Point]] = defaultdict(list)
        for point, item in {**self.unmeasured, **self.measured}.items():
            if item is None or _winner_of(item) != winner:
                keys[item.key if item else str(point)].append(point)
        gates = [point for point, names in self.gates.items() if names and not self._vouched(names, winner)]
        return sorted({*map(hull_of, keys.values()), *(Hull(point, point) for point in gates)})

    def _vouched(self, keys: Iterable[str], winner: Digest) -> bool:
        return any(_winner_of(self.decisions[key]) == winner for key in keys)


def _won(decision: Decision) -> bool:
    return decision.verdict == "promoted"


def _winner_of(decision: Decision) -> Digest | None:
    return decision.solution_digest if _won(decision) else None


@dataclass(frozen=True)
class _Field:
    """The points of one winner, its gaps between neighbours, and which of them are open."""

    points: list[Point]
    foreign: list[Hull]
    gaps: list[Hull]
    open_gaps: list[Hull]

    @classmethod
    def of(cls, winner: Digest, evidence: _Evidence, definition: Definition | None) -> "_Field":
        points, foreign = evidence.points_of(winner), evidence.foreign_to(winner)
        gaps = [gap for gap in neighbours(points) if not any(map(gap.meets, foreign))]
        closed = {gap for gap in gaps if _vouched_for(gap, evidence) or _empty(gap, evidence.names, definition)}
        return cls(points, foreign, gaps, [gap for gap in neighbours(points) if gap not in closed])

    def hulls(self, others: Sequence["_Field"]) -> list[Hull]:
        """Largest hulls of two points that may be served, single points included."""
        rivals = [gap for other in others for gap in other.gaps]
        territories = [hull for other in others for hull in other.territories()]
        found = [Hull(point, point) for point in self.points]
        for hull in pairs(self.points):
            single = hull in self.gaps
            inside = not any(hull.meets(other) for other in (rivals if single else territories))
            if inside and self._closed(hull):
                found.append(hull)
        return [hull for hull in found if not any(within(hull, other) for other in found)]

    def territories(self) -> list[Hull]:
        """Every hull that this winner could ever be given, were all of its gaps vouched for."""
        return [hull for hull in pairs(self.points) if not any(map(hull.meets, self.foreign))]

    def _closed(self, hull: Hull) -> bool:
        if any(map(hull.meets, self.foreign)):
            return False
        return not any(hull.covers(gap.low) and hull.covers(gap.high) for gap in self.open_gaps)


def _vouched_for(gap: Hull, evidence: _Evidence) -> bool:
    keys = {evidence.measured[gap.low].key, evidence.measured[gap.high].key}
    return any(
        gap.covers(point) and point not in (gap.low, gap.high) and timed & keys
        for point, timed in evidence.holdout.items()
    )


def _empty(gap: Hull, names: Sequence[str], definition: Definition | None) -> bool:
    """True if no call can fall between the two points."""
    if gap.size <= 2:
        return True
    if definition is None or gap.size > SMALL_GAP:
        return False
    ranges = (range(low, high + 1) for low, high in zip(gap.low, gap.high, strict=True))
    between = (point for point in product(*ranges) if point not in (gap.low, gap.high))
    sizes = (definition.const_axes | dict(zip(names, point, strict=True)) for point in between)
    return all(violated(definition.constraints, axes) for axes in sizes)


def _box(evidence: _Evidence, field: _Field, part: Hull, whole: Hull) -> LearntBox:
    axes = {name: (part.low[at], part.high[at]) for at, name in enumerate(evidence.names)}
    inside = {evidence.measured[point].key for point in field.points if whole.covers(point)}
    return LearntBox(axes, tuple(evidence.decisions[key] for key in sorted(inside)))

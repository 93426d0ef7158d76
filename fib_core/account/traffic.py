"""What the index does to the logged calls: time saved, share served.

In: a snapshot, an index, times of pairs with the name of their source. Out: calls and scores, train and holdout apart;
stress is no traffic. On train a served call takes its incumbent's time over the entry's confirmed ratio; on holdout,
where nothing is published, both times are taken as they were measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fib_core.account import scores
from fib_core.account.scores import Call
from fib_core.account.scoring import CONFIRMED, Population, Score
from fib_core.account.trials import Pair, Times, placed_on
from fib_core.index.lookup import find
from schemas.base import Digest
from schemas.index import DispatchIndex, IndexedDefinition
from schemas.snapshot import Placed, Snapshot, Split

LOGGED: tuple[Split, ...] = ("train", "holdout")
WHAT = "logged calls"


@dataclass(frozen=True)
class Measured:
    """Microseconds of (solution, workload) pairs, where they come from, and the pairs that the machine spoiled."""

    times: Times
    source: str
    spoiled: frozenset[Pair] = frozenset()


class Traffic(NamedTuple):
    """Logged calls of one side of one definition: all of them, those whose incumbent's time is known, and those whose
    time now is known as well. What an unknown time is replaced by is never counted.
    """

    population: Population
    every: tuple[Call, ...]
    based: tuple[Call, ...]
    timed: tuple[Call, ...]
    spoiled: int
    """Of those that are not in ``timed``: how many the machine spoiled. The others nobody timed."""

    @property
    def untimed(self) -> int:
        """Calls whose time now nobody knows, for no fault of the machine."""
        return len(self.every) - len(self.timed) - self.spoiled


def traffic_of(
    snapshot: Snapshot, index: DispatchIndex, block: IndexedDefinition, side: Split, by: Measured
) -> Traffic:
    """The calls of one side of one definition, as they were and as the index serves them."""
    placed = [item for item in placed_on(snapshot, block.definition_digest, side) if item.weight > 0]
    pairs = [(item, _before(index, block, item, by)) for item in placed]
    timed = [call_at(index, block, item, by) for item in placed]
    lost = [item for item, call in zip(placed, timed, strict=True) if call is None]
    population = Population(
        definition=block.name, side=side, what=WHAT, times=_source(side, by), trials=(), weights=snapshot.weights,
        baseline=(block.incumbent_digest,) if block.incumbent_digest else (), snapshot_digest=snapshot.digest,
    )  # fmt: skip
    return Traffic(
        population=population,
        every=tuple(call for _, call in pairs),
        based=tuple(call for item, call in pairs if before_us_at(block, item, by) is not None),
        timed=tuple(call for call in timed if call is not None),
        spoiled=sum(_spoiled(index, block, item, by) for item in lost),
    )


def traffic_scores(snapshot: Snapshot, index: DispatchIndex, by: Measured) -> list[Score]:
    """Weighted speed-up (13), served time and served calls per definition and side."""
    found: list[Score] = []
    for block in index.definitions:
        for side in LOGGED:
            one = traffic_of(snapshot, index, block, side, by)
            found += _scores(one)
    return found


def _scores(one: Traffic) -> list[Score]:
    """Each over the calls that it can use; what needs no time has left nobody out.

    Calls are not untimed by chance: a profile leaves out what it cannot promote. So where a time is missing there is
    no figure, rather than one of the winners alone.
    """
    values = (
        ("weighted_speedup", one.timed, scores.weighted_speedup(one.timed), one.population.times),
        ("served_time", one.based, scores.served_time(one.based), one.population.times),
        ("served_calls", one.every, scores.served_calls(one.every), "none needed"),
    )
    return [_score(one, name, calls, value, times) for name, calls, value, times in values if one.every]


def _score(one: Traffic, name: str, calls: Sequence[Call], value: float | None, times: str) -> Score:
    missing = len(one.every) - len(calls)
    spoiled = min(one.spoiled, missing)
    untimed = missing - spoiled
    plain = one.population.score(name, None, None if untimed else value, untimed)
    return replace(plain, count=len(calls), invalid=spoiled, times=times)


def _server(index: DispatchIndex, block: IndexedDefinition, item: Placed) -> tuple[Digest, float | None] | None:
    """Solution and published ratio of the entry that serves this point; None where the incumbent stays."""
    entry = find(index, block.definition_digest, item.workload.axes)
    return (entry.solution_digest, entry.ratio) if entry is not None and entry.solution_digest else None


def before_us_at(block: IndexedDefinition, item: Placed, by: Measured) -> float | None:
    """Microseconds of the incumbent at this point, if it was timed there."""
    return by.times.get((block.incumbent_digest or "", item.workload.digest))


def call_at(index: DispatchIndex, block: IndexedDefinition, item: Placed, by: Measured) -> Call | None:
    """Before and now at this point; None where a time that is needed is not known."""
    before_us, server = before_us_at(block, item, by), _server(index, block, item)
    if before_us is None:
        return None
    if server is None:
        return Call(item.weight, before_us, before_us, served=False)
    solution, ratio = server
    measured_us = by.times.get((solution, item.workload.digest))
    now_us = before_us / ratio if item.split == "train" and ratio else measured_us
    return Call(item.weight, before_us, now_us) if now_us is not None else None


def _before(index: DispatchIndex, block: IndexedDefinition, item: Placed, by: Measured) -> Call:
    """Weight, incumbent's time (0 where unknown) and who serves: for shares that need no time of now."""
    before_us = before_us_at(block, item, by) or 0.0
    return Call(item.weight, before_us, before_us, _server(index, block, item) is not None)


def _source(side: Split, by: Measured) -> str:
    return f"{CONFIRMED} on the incumbent's {by.source}" if side == "train" else by.source


def _spoiled(index: DispatchIndex, block: IndexedDefinition, item: Placed, by: Measured) -> bool:
    """Is a time missing since the machine was at fault?"""
    server = _server(index, block, item)
    needed = [(digest, item.workload.digest) for digest in (block.incumbent_digest, server and server[0]) if digest]
    return any(pair in by.spoiled and pair not in by.times for pair in needed)

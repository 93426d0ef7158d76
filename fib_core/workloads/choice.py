"""Which calls are worth measuring: those between which most of the traffic lies, with a held-out call in each gap.

In: candidate calls with sides and families, and the traffic. Out: an ordered choice. One greedy pass maximises the
share of calls that boxes (``fib_core.index.boxes``) would cover, if the best kernel changes at random along the way.
Knows no times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fib_core.workloads.families import FAMILIES_FOR_HOLDOUT
from fib_core.workloads.reach import Places, Reach, Sizes

PAIR_AND_GATE = 3
GATES_TRIED = 3
TINY = 1e-9


@dataclass(frozen=True)
class Candidates:
    """Calls that may be measured, one row each, and the traffic that is to be covered, one row per distinct call.

    ``lengths`` are classes of mean lengths, as the guard of an entry has them.
    """

    sizes: Sizes
    lengths: Sizes
    counts: Sequence[int]
    families: Sequence[str]
    holdout: Sequence[bool]
    traffic: Sizes
    traffic_lengths: Sizes
    traffic_counts: Sequence[int]


@dataclass(frozen=True)
class Choice:
    """Places of the train and holdout calls that bound boxes, and of more that do them no harm."""

    train: Places = ()
    gates: Places = ()
    more: Places = ()
    share: float = 0.0
    """Expected share of the traffic inside boxes."""

    @property
    def core(self) -> Places:
        """What the boxes rest on."""
        return (*self.train, *self.gates)

    @property
    def places(self) -> Places:
        """All of them, the core first."""
        return (*self.core, *self.more)


def choose(candidates: Candidates, limit: int, decided: int | None = None) -> Choice:
    """At most ``limit`` calls, of which only the first ``decided`` will be timed in rounds (all, if None).

    The rest makes up the families that a decision needs and fills the limit, heaviest first, but no train call lies
    inside a box of the core unless too few families remain without it.
    """
    search = _Search(candidates)
    slots = limit if decided is None else min(limit, decided)
    # A core that leaves no room for the families that a decision needs is worth nothing: try a smaller one.
    for part in range(slots, 0, -1):
        found = search.completed(part, limit, scarce=decided is not None)
        if search.enough(found):
            return found
    return search.completed(slots, limit, scarce=False)


class _Search:
    """Greedy moves over the candidates of one definition."""

    def __init__(self, candidates: Candidates) -> None:
        self.given = candidates
        self.reach = Reach(
            candidates.sizes,
            candidates.traffic,
            candidates.traffic_counts,
            candidates.lengths,
            candidates.traffic_lengths,
        )
        self.train = [place for place, held in enumerate(candidates.holdout) if not held]
        self.held = [place for place, held in enumerate(candidates.holdout) if held]

    def completed(self, slots: int, limit: int, scarce: bool) -> Choice:
        """A core of at most ``slots`` calls, filled up to ``limit``."""
        core = self.core(slots, scarce)
        return Choice(core.train, core.gates, tuple(self.more(core, limit - len(core.core), scarce)), core.share)

    def enough(self, chosen: Choice) -> bool:
        """True if the choice holds as many families as a decision needs, or all there are."""
        families = {self.given.families[place] for place in chosen.places}
        return len(families) >= min(FAMILIES_FOR_HOLDOUT, len(set(self.given.families)))

    def core(self, slots: int, scarce: bool) -> Choice:
        """Start with the best pair around a holdout, then take what gains most per call, until nothing gains."""
        chosen = self._start(slots, scarce)
        while moves := [move for move in self._moves(chosen, slots) if move.share > chosen.share + TINY]:
            base = chosen
            chosen = max(moves, key=lambda move: (_rate(move, base), move.core))
        return chosen

    def more(self, core: Choice, free: int, scarce: bool) -> list[int]:
        """Up to ``free`` further places, heaviest first: new families while they are too few, whatever they cost."""
        found: list[int] = []
        while len(found) < free:
            used = (*core.core, *found)
            families = {self.given.families[place] for place in used}
            unused = sorted({*self.held, *self.train} - {*used}, key=self._heavy, reverse=True)
            fresh = [place for place in unused if self.given.families[place] not in families]
            needed = fresh if len(families) < FAMILIES_FOR_HOLDOUT else []
            harmless = (place for place in needed or unused if not self._harms(place, core, found, scarce))
            place = next(harmless, needed[0] if needed else None)
            if place is None:
                break
            found.append(place)
        return found

    def _harms(self, place: int, core: Choice, found: Sequence[int], scarce: bool) -> bool:
        """Untimed, a train call may block a box; timed, a call may open a gap or draw a gate to itself."""
        if scarce:
            return not self.given.holdout[place] and self._blocks(place, core, found)
        before, after = (self._timed(core, more).share for more in (found, [*found, place]))
        return after < before - TINY

    def _timed(self, core: Choice, more: Sequence[int]) -> Choice:
        train = tuple(place for place in more if not self.given.holdout[place])
        gates = tuple(place for place in more if self.given.holdout[place])
        return self._scored((*core.train, *train), (*core.gates, *gates))

    def _start(self, slots: int, scarce: bool) -> Choice:
        if slots < 1 or not self.train:
            return Choice()
        pairs = [(low, high) for low in self.train for high in self.train if self.reach.less(low, high)]
        starts = [
            self._scored((low, high), (gate,))
            for low, high in (pairs if slots >= PAIR_AND_GATE else [])
            for gate in self._between(low, high, ())[:GATES_TRIED]
        ]
        for start in sorted(starts, key=lambda item: (item.share, item.core), reverse=True):
            if not scarce or self._families_left(start):
                return start
        # No box to be had: the heaviest call, and a holdout beside it, without which nothing is decided.
        heaviest = max(self.train, key=self._heavy)
        near = [gate for gate in self.held if self.reach.near(heaviest, gate)]
        beside = sorted(near or self.held, key=self._heavy, reverse=True)[:1]
        return self._scored((heaviest,), tuple(beside) if slots > 1 else ())

    def _families_left(self, core: Choice) -> bool:
        """True if enough families remain for a decision without a train call that blocks a box."""
        families = {self.given.families[place] for place in self.train if not self._blocks(place, core)}
        families |= {self.given.families[place] for place in self.held}
        return len(families) >= min(FAMILIES_FOR_HOLDOUT, len(set(self.given.families)))

    def _blocks(self, place: int, core: Choice, found: Sequence[int] = ()) -> bool:
        """True if the place's key, not being timed, would reach into a box of the core."""
        key = self._key(place)
        group = [place, *(other for other in found if not self.given.holdout[other] and self._key(other) == key)]
        return key not in map(self._key, core.train) and self.reach.crosses(group, core.train)

    def _key(self, place: int) -> str:
        return self.given.families[place].partition("|")[0]

    def _moves(self, chosen: Choice, slots: int) -> Iterable[Choice]:
        """One more train call, with and without the holdouts that its gaps need; or one holdout for an open gap."""
        free = slots - len(chosen.core)
        for place in self.train if free else ():
            if place not in chosen.train:
                train = (*chosen.train, place)
                yield self._scored(train, chosen.gates)
                gates = self._missing(train, chosen.gates, place)
                if 0 < len(gates) < free:
                    yield self._scored(train, (*chosen.gates, *gates))
        for gate in self._missing(chosen.train, chosen.gates, None) if free else ():
            yield self._scored(chosen.train, (*chosen.gates, gate))

    def _scored(self, train: Places, gates: Places) -> Choice:
        return Choice(train, gates, share=self.reach.share(train, gates))

    def _missing(self, train: Places, gates: Places, place: int | None) -> list[int]:
        """The heaviest free holdout of every open gap (next to ``place``), where there is one."""
        found: list[int] = []
        for low, high in self.reach.open_gaps(train, gates):
            if place in (None, low, high):
                found += self._between(low, high, (*gates, *found))[:1]
        return found

    def _between(self, low: int, high: int, used: Sequence[int]) -> list[int]:
        free = [gate for gate in self.held if gate not in used and self.reach.inside(low, gate, high)]
        return sorted(free, key=self._heavy, reverse=True)

    def _heavy(self, place: int) -> tuple[int, int]:
        return self.given.counts[place], -place


def _rate(move: Choice, base: Choice) -> float:
    return (move.share - base.share) / (len(move.core) - len(base.core))

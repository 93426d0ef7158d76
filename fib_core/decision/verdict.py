"""The decision rule for one key, and what binds the keys of a definition together.

In: a KeyCase (contest, key, box, paired rounds, rules). Out: a Judged per key, which ``decided`` puts into a record.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fib_core.decision.contest import Contest, applies
from fib_core.decision.estimates import Assessment, assess, noise_floor
from fib_core.decision.paired import Entry, Rounds
from fib_core.decision.profiles import Look, Rules
from fib_core.decision.spread import Origin, Worker, spread
from fib_core.workloads.axisclass import are_neighbours
from schemas.base import Digest
from schemas.decision import Decision, KeyBox, Spread
from schemas.snapshot import Placed
from schemas.visit import Contestant

Machine = Callable[[int], tuple[str, ...]]
"""Faults of the machine in so many first rounds; none = sound."""


@dataclass(frozen=True)
class KeyCase:
    """All that one key's verdict depends on."""

    contest: Contest
    key: str
    box: KeyBox
    rounds: Rounds
    rules: Rules
    machine: Machine = lambda rounds: ()
    earlier: Sequence[Decision] = ()

    @cached_property
    def train(self) -> tuple[Placed, ...]:
        """The key's timed train workloads."""
        mine = {item.workload.digest for item in self.contest.keys[self.key]}
        return tuple(item for item in self.contest.timed if item.workload.digest in mine)

    def enters(self, finalist: Contestant) -> bool:
        """True if the finalist supports every train workload of the key, timed or not: all of its box."""
        key = self.contest.keys[self.key]
        return all(applies(finalist, self.contest.definition, item.workload) for item in key)

    @cached_property
    def finalists(self) -> tuple[Contestant, ...]:
        """Finalists of the contest that enter at this key."""
        return tuple(item for item in self.contest.finalists if self.enters(item))

    @cached_property
    def gates(self) -> tuple[Placed, ...]:
        """Timed holdout workloads in the key's class or next to it (all, if none is near), and all stress workloads."""
        here = self.contest.keys[self.key][0].workload.axes
        holdout = [item for item in self.contest.timed if item.split == "holdout"]
        near = [item for item in holdout if are_neighbours(here, item.workload.axes)]
        return (*(near or holdout), *(item for item in self.contest.timed if item.split == "stress"))

    @property
    def control(self) -> Entry:
        """The incumbent under its false name."""
        assert self.contest.incumbent is not None
        return Entry("control", self.contest.incumbent.solution_digest)

    @property
    def worker(self) -> Worker | None:
        """Where, with what clock and for how long the control ran; None before it did."""
        watched = self.rounds.watched
        control_us = self.rounds.typical_us(self.control, self.train)
        if not watched or control_us is None:
            return None
        devices = sorted({item.environment.device_id for item in watched})
        return Worker(tuple(devices), watched[0].job.timer, self.rules.profile, control_us)


@dataclass(frozen=True)
class Judged:
    """A key's own verdict, before the keys of its definition are looked at together. ``causes``: the machine's."""

    case: KeyCase
    assessments: tuple[Assessment, ...]
    control: Assessment | None
    look: Look
    reason: str | None
    round_count: int
    causes: tuple[str, ...] = ()
    spread: Spread | None = None

    @property
    def passing(self) -> tuple[Assessment, ...]:
        """Finalists that meet all four conditions; nobody does on an unsound machine."""
        return () if self.causes else tuple(item for item in self.assessments if not item.failed)

    @property
    def spoiled(self) -> bool:
        """True if the control won on a sound machine: the rule fails here, so it decides nothing."""
        return self.control is not None and not self.control.failed and not self.causes

    @property
    def is_final(self) -> bool:
        """True if no further look may change it."""
        return bool(self.passing or self.causes or self.spoiled or self.look == self.case.rules.looks[-1])


def judge(case: KeyCase) -> Judged:
    """Take the planned looks in order; stop at the first that promotes, the control included, or finds no machine."""
    blocked = case.contest.blocked or _not_timed(case)
    if blocked:
        return Judged(case, (), None, case.rules.looks[0], blocked, 0)
    done = _complete_rounds(case)
    judged: Judged | None = None
    for look in case.rules.looks:
        if look.rounds <= done and (judged is None or not judged.is_final):
            judged = _at_look(case, look)
    if judged is None:
        look = case.rules.looks[0]
        return Judged(case, (), None, look, f"not enough rounds: {done} complete of {look.rounds} planned", done)
    if judged.is_final:
        return judged
    reason = f"not enough rounds: undecided after {judged.look.rounds} of {case.rules.rounds}"
    return Judged(case, judged.assessments, judged.control, judged.look, reason, judged.round_count, (), judged.spread)


def winner_of(judged: Judged, wins: Counter[Digest]) -> Assessment | None:
    """The largest estimate; of those that its interval does not tell apart, the one that wins most keys."""
    if not judged.passing:
        return None
    best = max(judged.passing, key=lambda item: item.ratio)
    close = [item for item in judged.passing if item.interval[1] >= best.ratio]
    return max(close, key=lambda item: (wins[item.digest], item.ratio, item.digest))


def _at_look(case: KeyCase, look: Look) -> Judged:
    control = assess(case.rounds, case.control, case.train, case.gates, look, case.rules)
    origin = Origin(
        case.contest.snapshot_digest, case.contest.definition.digest, case.key, case.contest.campaign
    )
    noise = spread(control.log_ratios, case.worker, look.rounds, case.earlier, origin)
    effect = noise_floor(noise, case.rules)
    raw = [_assess_finalist(case, item, look) for item in case.finalists]
    tested = Assessment.adjusted(raw, look, effect)
    checked = control.judged(min(1.0, control.p_value * len(raw)), look, effect)
    return Judged(case, tuple(tested), checked, look, None, look.rounds, case.machine(look.rounds), noise)


def _assess_finalist(case: KeyCase, finalist: Contestant, look: Look) -> Assessment:
    definition = case.contest.definition
    gates = [item for item in case.gates if applies(finalist, definition, item.workload)]
    found = assess(case.rounds, Entry("candidate", finalist.solution_digest), case.train, gates, look, case.rules)
    return replace(found, gate_failed=found.gate_failed or _untried(case, gates))


def _untried(case: KeyCase, gates: Sequence[Placed]) -> str:
    """Not applicable is never a pass: a point of the box that the finalist leaves out, or no holdout at all."""
    tried = {item.workload.digest for item in gates}
    for item in case.gates:
        if item.workload.digest not in tried and case.box.covers(item.workload.axes):
            return f"a {item.split} workload of the key's box is outside its support"
    return "" if any(item.split == "holdout" for item in gates) else "no holdout workload inside its support"


def _not_timed(case: KeyCase) -> str | None:
    for item in case.train:
        survivors = case.contest.toothless.get(item.workload.digest)
        if survivors:
            return f"toothless: axes {item.workload.axes} would let pass {', '.join(survivors)}: kept incumbent"
    if case.train:
        return None if case.finalists else "no finalist supports this key: kept incumbent"
    share = sum(item.weight for item in case.contest.keys[case.key])
    return f"not timed in the profile {case.rules.profile} (weight {share:.3g}): kept incumbent"


def _complete_rounds(case: KeyCase) -> int:
    """Rounds in which the control and the finalists still in the race are complete; a failed one stops nobody else."""
    entries = [Entry("candidate", item.solution_digest) for item in case.finalists]
    racing = [case.control, *(entry for entry in entries if entry not in case.rounds.failures)]
    return min(len(case.rounds.log_ratios(entry, case.train)) for entry in racing)

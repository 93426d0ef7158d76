"""The decision rule for one key, and what binds the keys of a definition together.

In: a KeyCase (contest, key, box, paired rounds, rules). Out: a Decision whose reason a person understands.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fib_core.axisclass import are_neighbours
from fib_core.contest import Contest, applies
from fib_core.estimates import Assessment, assess, noise_floor
from fib_core.paired import Entry, Rounds
from fib_core.profiles import Look, Rules
from schemas.base import Digest
from schemas.decision import Condition, Decision, Estimate, KeyBox, Verdict
from schemas.snapshot import Placed
from schemas.visit import Contestant

_FAILED_TEXT: dict[Condition, str] = {
    "significance": "is not significant (p {p:.3g}, needs < {alpha:g})",
    "min_effect": "is below the minimum effect {effect:.2f}x",
    "gates_passed": "fails a correctness gate ({gate})",
    "gates_speed": "may be slower on a gate ({gate})",
}


@dataclass(frozen=True)
class KeyCase:
    """All that one key's verdict depends on."""

    contest: Contest
    key: str
    box: KeyBox
    rounds: Rounds
    rules: Rules

    @property
    def train(self) -> tuple[Placed, ...]:
        """The key's timed train workloads."""
        mine = {item.workload.digest for item in self.contest.keys[self.key]}
        return tuple(item for item in self.contest.timed if item.workload.digest in mine)

    def enters(self, finalist: Contestant) -> bool:
        """True if the finalist supports every train workload of the key, timed or not: all of its box."""
        key = self.contest.keys[self.key]
        return all(applies(finalist, self.contest.definition, item.workload) for item in key)

    def gates(self) -> tuple[Placed, ...]:
        """Timed holdout workloads in the key's class or next to it (all, if none is near), and all stress workloads."""
        here = self.contest.keys[self.key][0].workload.axes
        holdout = [item for item in self.contest.timed if item.split == "holdout"]
        near = [item for item in holdout if are_neighbours(here, item.workload.axes)]
        return (*(near or holdout), *(item for item in self.contest.timed if item.split == "stress"))


@dataclass(frozen=True)
class Judged:
    """A key's own verdict, before the keys of its definition are looked at together."""

    case: KeyCase
    assessments: tuple[Assessment, ...]
    control: Assessment | None
    look: Look
    reason: str | None
    round_count: int

    @property
    def passing(self) -> tuple[Assessment, ...]:
        """Finalists that meet all four conditions."""
        return tuple(item for item in self.assessments if not item.failed)


def judge(case: KeyCase) -> Judged:
    """Take the planned looks in order; stop at the first that promotes."""
    blocked = case.contest.blocked or _not_timed(case)
    if blocked:
        return Judged(case, (), None, case.rules.looks[0], blocked, 0)
    done = _complete_rounds(case)
    judged = [_at_look(case, look) for look in case.rules.looks if look.rounds <= done]
    best = next((item for item in judged if item.passing), judged[-1] if judged else None)
    if best is None:
        look = case.rules.looks[0]
        reason = f"not enough rounds: {done} complete of {look.rounds} planned"
        return Judged(case, (), None, look, reason, done)
    if not best.passing and best.look != case.rules.looks[-1]:
        reason = f"not enough rounds: undecided after {best.look.rounds} of {case.rules.rounds}"
        return Judged(case, best.assessments, best.control, best.look, reason, best.round_count)
    return best


def resolve(judged: Sequence[Judged]) -> list[Decision]:
    """Decisions of one definition: a promoted control spoils all; close winners give way to the one that wins most."""
    spoiled = next((item for item in judged if item.control and not item.control.failed), None)
    wins = Counter(passing.digest for item in judged for passing in item.passing)
    return [_decision(item, _winner(item, wins), spoiled) for item in judged]


def _at_look(case: KeyCase, look: Look) -> Judged:
    control = assess(case.rounds, _control(case), case.train, case.gates(), look, case.rules)
    effect = noise_floor(control, case.rules)
    entries = [(Entry("candidate", item.solution_digest), item) for item in case.contest.finalists if case.enters(item)]
    raw = [
        assess(case.rounds, entry, case.train, _applicable(case, finalist), look, case.rules)
        for entry, finalist in entries
    ]
    tested = Assessment.adjusted(raw, look, effect)
    checked = control.judged(min(1.0, control.p_value * len(entries)), look, effect)
    return Judged(case, tuple(tested), checked, look, None, look.rounds)


def _control(case: KeyCase) -> Entry:
    assert case.contest.incumbent is not None
    return Entry("control", case.contest.incumbent.solution_digest)


def _applicable(case: KeyCase, finalist: Contestant) -> list[Placed]:
    return [item for item in case.gates() if applies(finalist, case.contest.definition, item.workload)]


def _not_timed(case: KeyCase) -> str | None:
    finalists = [item for item in case.contest.finalists if case.enters(item)]
    for item in case.train:
        survivors = case.contest.toothless.get(item.workload.digest)
        if survivors:
            return f"toothless: axes {item.workload.axes} would let pass {', '.join(survivors)}: kept incumbent"
    if case.train:
        return None if finalists else "no finalist supports this key: kept incumbent"
    share = sum(item.weight for item in case.contest.keys[case.key])
    return f"not timed in the profile {case.rules.profile} (weight {share:.3g}): kept incumbent"


def _complete_rounds(case: KeyCase) -> int:
    """Rounds in which the control and the finalists still in the race are complete; a failed one stops nobody else."""
    entries = [Entry("candidate", item.solution_digest) for item in case.contest.finalists if case.enters(item)]
    racing = [_control(case), *(entry for entry in entries if entry not in case.rounds.failures)]
    return min(len(case.rounds.log_ratios(entry, case.train)) for entry in racing)


def _winner(judged: Judged, wins: Counter[Digest]) -> Assessment | None:
    if not judged.passing:
        return None
    best = max(judged.passing, key=lambda item: item.ratio)
    close = [item for item in judged.passing if item.interval[1] >= best.ratio]
    return max(close, key=lambda item: (wins[item.digest], item.ratio, item.digest))


def _decision(judged: Judged, winner: Assessment | None, spoiled: Judged | None) -> Decision:
    case = judged.case
    verdict, reason, failed = _verdict(judged, winner, spoiled)
    items = (*case.train, *case.gates()) if judged.assessments else case.train
    incumbent = case.contest.incumbent
    entries = [Entry("candidate", item.digest) for item in judged.assessments]
    entries += [_control(case), Entry("incumbent", incumbent.solution_digest)] if incumbent else []
    entries += case.rounds.forms
    return Decision(
        snapshot_digest=case.contest.snapshot_digest,
        definition_digest=case.contest.definition.digest,
        definition=case.contest.definition.name,
        key=case.key,
        box=case.box,
        profile=case.rules.profile,
        verdict=verdict,
        solution_digest=winner.digest if winner and verdict == "promoted" else None,
        incumbent_digest=incumbent.solution_digest if incumbent else None,
        failed=failed,
        reason=reason,
        finalists=tuple(item.solution_digest for item in case.contest.finalists if case.enters(item)),
        rounds=judged.round_count,
        alpha=judged.look.alpha,
        min_effect=judged.control.effect if judged.control else case.rules.min_effect,
        estimates=_estimates(judged.assessments),
        control=judged.control.estimate if judged.control else None,
        workloads=tuple(sorted(item.workload.digest for item in items)),
        evaluations=case.rounds.evidence(entries, items) if judged.assessments else (),
    )


def _estimates(assessments: Sequence[Assessment]) -> tuple[Estimate, ...]:
    return tuple(item.estimate for item in assessments if item.estimate is not None)


def _verdict(
    judged: Judged, winner: Assessment | None, spoiled: Judged | None
) -> tuple[Verdict, str, tuple[Condition, ...]]:
    if spoiled is not None and judged.assessments:
        assert spoiled.control is not None
        where = f"{spoiled.case.key}: {spoiled.control.text}"
        return "invalid", f"the control (the incumbent under a false name) won at key {where}", ()
    if judged.reason is not None:
        verdict: Verdict = "not_enough_rounds" if judged.reason.startswith("not enough rounds") else "kept_incumbent"
        return verdict, judged.reason, ()
    if winner is not None:
        return "promoted", f"promoted {_name(judged, winner)} at {winner.text}", ()
    best = max(judged.assessments, key=lambda item: item.ratio)
    return "kept_incumbent", _kept(judged, best), best.failed


def _kept(judged: Judged, best: Assessment) -> str:
    details = {"p": best.p_holm, "alpha": judged.look.alpha, "effect": 1 + best.effect, "gate": best.gate}
    causes = " and ".join(_FAILED_TEXT[item].format(**details) for item in best.failed)
    return f"kept incumbent: best candidate {_name(judged, best)} at {best.text} {causes}"


def _name(judged: Judged, assessment: Assessment) -> str:
    names = {item.solution_digest: item.solution.name for item in judged.case.contest.finalists}
    return names[assessment.digest]

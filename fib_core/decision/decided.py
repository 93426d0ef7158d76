"""Judged keys of one definition as Decision records, with reasons that a person understands.

In: a Judged per key. Out: a Decision per key. A machine's fault comes first, then a control that won, then the rule.
"""

from collections import Counter
from collections.abc import Sequence

from fib_core.decision.contest import applies
from fib_core.decision.estimates import Assessment
from fib_core.decision.paired import Entry
from fib_core.decision.verdict import Judged, winner_of
from schemas.decision import Condition, Decision, Estimate, Verdict
from schemas.snapshot import Placed

_FAILED_TEXT: dict[Condition, str] = {
    "significance": "is not significant (p {p:.3g}, needs < {alpha:g})",
    "min_effect": "is below the minimum effect {effect:.2f}x",
    "gates_passed": "fails a correctness gate ({gate})",
    "gates_speed": "may be slower on a gate ({gate})",
}


def resolve(judged: Sequence[Judged]) -> list[Decision]:
    """Decisions of one definition: a promoted control spoils all; close winners give way to the one that wins most."""
    spoiled = next((item for item in judged if item.spoiled), None)
    wins = Counter(passing.digest for item in judged for passing in item.passing)
    return [_decision(item, winner_of(item, wins), spoiled) for item in judged]


def _decision(judged: Judged, winner: Assessment | None, spoiled: Judged | None) -> Decision:
    case = judged.case
    verdict, reason, failed = _verdict(judged, winner, spoiled)
    items = (*case.train, *_gates(judged, winner)) if judged.assessments else case.train
    incumbent = case.contest.incumbent
    entries = [Entry("candidate", item.digest) for item in judged.assessments]
    entries += [case.control, Entry("incumbent", incumbent.solution_digest)] if incumbent else []
    entries += case.rounds.forms
    worker = case.worker if judged.control else None
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
        finalists=tuple(item.solution_digest for item in case.finalists),
        rounds=judged.round_count,
        alpha=judged.look.alpha,
        min_effect=judged.control.effect if judged.control else case.rules.min_effect,
        estimates=_estimates(judged.assessments),
        control=judged.control.estimate if judged.control else None,
        workloads=tuple(sorted(item.workload.digest for item in items)),
        evaluations=case.rounds.evidence(entries, items) if judged.assessments else (),
        campaign=case.contest.campaign,
        causes=judged.causes,
        forms=tuple(item.solution_digest for item in case.contest.forms),
        spread=judged.spread,
        device_ids=worker.device_ids if worker else (),
        timer=worker.timer if worker else "",
        control_us=worker.control_us if worker else None,
    )


def _gates(judged: Judged, winner: Assessment | None) -> list[Placed]:
    """Gates that say something about the decision: of a winner, only those that it took. Boxes are learnt from them."""
    case = judged.case
    chosen = [item for item in case.finalists if winner is None or item.solution_digest == winner.digest]
    return [item for item in case.gates if any(applies(one, case.contest.definition, item.workload) for one in chosen)]


def _estimates(assessments: Sequence[Assessment]) -> tuple[Estimate, ...]:
    return tuple(item.estimate for item in assessments if item.estimate is not None)


def _verdict(
    judged: Judged, winner: Assessment | None, spoiled: Judged | None
) -> tuple[Verdict, str, tuple[Condition, ...]]:
    if judged.causes:
        return "invalid", f"the machine was not fit to judge: {'; '.join(judged.causes)}", ()
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

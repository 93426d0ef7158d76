"""The rounds of one campaign of one contest: planned rounds, planned looks, then its decisions.

In: a contest after its screen, a campaign number. Out: one Decision per key, stored. A round that was measured before
is found by Job; a finished campaign is found whole.
"""

import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace

from prefect import get_run_logger

from fib_core import confirm as room
from fib_core import ledger
from fib_core.decision.contest import Contest, VisitSettings
from fib_core.decision.profiles import RULES
from schemas.base import Digest
from schemas.decision import Decision
from schemas.evaluation import Evaluation
from tasks.campaigns import contest_digest, decided, finish, narrowed, worth_rounds
from tasks.profile import candidate_limit_s, visit_settings
from tasks.screen import Screened
from tasks.visits import settle
from tasks.wiring import House


@dataclass(frozen=True)
class Plan:
    """How rounds of one definition are carried out. ``digest`` names the contest, whatever the number.

    ``keys`` are those to be decided: all of the definition, or what no earlier decision has settled.
    """

    contest: Contest
    settings: VisitSettings
    number: int
    digest: Digest
    keys: frozenset[str]


def planned(
    house: House, screened: Screened, blob_root: str | None, number: int, settled: Collection[str] = ()
) -> Plan:
    """Rounds for every key that is not settled; the incumbent's visit bounds everybody's."""
    contest = replace(narrowed(screened.contest, settled), campaign=number)
    timed = [item.workload for item in contest.timed]
    settings = visit_settings(house.settings, "confirm", contest.definition, timed, blob_root)
    digest = contest.incumbent.solution_digest if contest.incumbent else None
    own = [item for item in screened.evaluations if item.job.solution_digest == digest]
    limits = settings.limits.model_copy(update={"visit_s": candidate_limit_s(house.settings, own)})
    name = contest_digest(house, contest, settings)
    return Plan(contest, replace(settings, limits=limits), number, name, frozenset(contest.keys) - frozenset(settled))


def earlier(house: House, plan: Plan) -> list[Decision] | None:
    """What this campaign decided, if it is finished."""
    return decided(house, plan.digest, plan.number)


def play(house: House, plan: Plan) -> list[Decision]:
    """Run what is missing of the campaign, look only at the planned looks; raises OutOfTime between two visits."""
    rules, done = RULES[house.settings.profile], 0
    evaluations: dict[Digest, Evaluation] = {}
    if not worth_rounds(plan.contest):
        return _kept(house, _decide(house, plan, evaluations))
    for look in rules.looks:
        for number in range(done + 1, look.rounds + 1):
            evaluations |= _round(house, plan, number)
        done = look.rounds
        decisions = _decide(house, plan, evaluations)
        if not room.needs_more_rounds(decisions):
            finish(house, plan.digest, plan.number, decisions)
            break
    return _kept(house, decisions)


def _round(house: House, plan: Plan, number: int) -> dict[Digest, Evaluation]:
    rounds, name = RULES[house.settings.profile].rounds, plan.contest.definition.name
    house.budget.place = f"round {number} of {rounds} of {name}, campaign {plan.number}"
    found: dict[Digest, Evaluation] = {}
    for request in room.round_requests(plan.contest, number, plan.settings, secrets.token_hex(16)):
        found |= {item.digest: item for item in settle(house, request).evaluations}
    get_run_logger().info("round %d of %d", number, rounds)
    return found


def _decide(house: House, plan: Plan, evaluations: dict[Digest, Evaluation]) -> list[Decision]:
    rules = RULES[house.settings.profile]
    # Only a rule whose minimum effect is measured asks how far runs of one program lie apart.
    known = house.memory.all_of(house.store) if rules.noise_factor else ()
    decisions = room.decide(plan.contest, evaluations, rules, house.environment.device_class, known)
    return [item for item in decisions if item.key in plan.keys]


def _kept(house: House, decisions: list[Decision]) -> list[Decision]:
    for decision in decisions:
        ledger.save(house.store, "decisions", decision)
    return decisions

"""Stage 5 as the orchestrator treats it: paired fresh-process rounds of one definition, then its decisions."""

import secrets
from dataclasses import replace

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import confirm as room
from fib_core import ledger
from fib_core.contest import VisitSettings
from fib_core.profiles import RULES
from fib_core.report import decision_rows
from schemas import rows as flat
from schemas.decision import Decision
from schemas.evaluation import Evaluation
from tasks.artifacts import show_table, slug
from tasks.profile import candidate_limit_s, visit_settings
from tasks.screen import Screened
from tasks.tables import require
from tasks.visits import settle
from tasks.wiring import House


@task(task_run_name="confirm {screened.contest.definition.name}", cache_policy=NO_CACHE)
def confirm(house: House, screened: Screened, blob_root: str | None) -> list[Decision]:
    """Run the planned rounds, look only at the planned looks, and record why every key has the entry it has."""
    logger = get_run_logger()
    contest, rules = screened.contest, RULES[house.settings.profile]
    device_class = house.environment.device_class
    evaluations: dict[str, Evaluation] = {}
    decisions = room.decide(contest, evaluations, rules, device_class)
    if contest.blocked is None:
        settings = _settings(house, screened, blob_root)
        done = 0
        for look in rules.looks:
            for number in range(done + 1, look.rounds + 1):
                for request in room.round_requests(contest, number, settings, secrets.token_hex(16)):
                    evaluations |= {item.digest: item for item in settle(house, request).evaluations}
                logger.info("round %d of %d", number, rules.rounds)
            done = look.rounds
            decisions = room.decide(contest, evaluations, rules, device_class)
            if not room.needs_more_rounds(decisions):
                break
    for decision in decisions:
        ledger.save(house.store, "decisions", decision)
        logger.info("[%s] %s", decision.key, decision.reason)
    require("DecisionTable", flat.decision_rows(decisions))
    rows = decision_rows(decisions, {item.solution_digest: item.solution for item in screened.entrants})
    show_table(slug("decisions", contest.definition.name), rows, f"Every key of {contest.definition.name}.")
    return decisions


def _settings(house: House, screened: Screened, blob_root: str | None) -> VisitSettings:
    contest = screened.contest
    assert contest.incumbent is not None
    timed = [item.workload for item in contest.timed]
    settings = visit_settings(house.settings, "confirm", contest.definition, timed, blob_root)
    digest = contest.incumbent.solution_digest
    own = [item for item in screened.evaluations if item.job.solution_digest == digest]
    limit = candidate_limit_s(house.settings, own)
    limits = settings.limits.model_copy(update={"visit_s": limit})
    return replace(settings, limits=limits)

"""Stage 5 as the orchestrator treats it: paired fresh-process rounds of one definition, then its decisions."""

from prefect import get_run_logger

from fib_core.report import decision_rows
from schemas import rows as flat
from schemas.decision import Decision
from tasks.artifacts import show_table, slug
from tasks.rounds import earlier, planned, play
from tasks.screen import Screened
from tasks.standing import standing_decisions
from tasks.stoppable import stoppable
from tasks.tables import require
from tasks.wiring import House


@stoppable(task_run_name="confirm {screened.contest.definition.name}")
def confirm(house: House, screened: Screened, blob_root: str | None) -> list[Decision]:
    """Run the planned rounds, look only at the planned looks, and record why every key has the entry it has."""
    decisions = list(_settled(house, screened, blob_root).values())
    for decision in decisions:
        get_run_logger().info("[%s] %s", decision.key, decision.reason)
    require("DecisionTable", flat.decision_rows(decisions))
    rows = decision_rows(decisions, {item.solution_digest: item.solution for item in screened.entrants})
    name = screened.contest.definition.name
    show_table(slug("decisions", name), rows, f"Every key of {name}.")
    house.budget.counts["confirmed"] += 1
    return decisions


def _settled(house: House, screened: Screened, blob_root: str | None) -> dict[str, Decision]:
    """Key -> decision: what stands, then rounds for the rest; nothing of an earlier campaign than the one asked for.

    What a finished campaign calls INVALID is repeated under the next number, by the next run.
    """
    number = house.settings.numbers[0]
    settled = standing_decisions(house, screened.contest)
    while (plan := planned(house, screened, blob_root, number, settled)).keys:
        found = earlier(house, plan)
        settled |= {item.key: item for item in (play(house, plan) if found is None else found)}
        spoiled = [key for key in plan.keys if settled[key].verdict == "invalid"]
        if found is None or not spoiled:
            break
        get_run_logger().info("campaign %d was spoiled at %s: again under the next number", number, sorted(spoiled))
        settled, number = {key: item for key, item in settled.items() if key not in spoiled}, number + 1
    return dict(sorted(settled.items()))

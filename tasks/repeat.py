"""Further campaigns of a run: the same contests again, independently, until all are done or the time is spent.

In: what the screen saw. Out: how far the campaigns came. Their decisions stay in the store; the index comes from the
first campaign alone, since choosing the best-looking one of several would be the winner's curse again.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from prefect import get_run_logger

from schemas.decision import Decision
from tasks.budget import OutOfTime
from tasks.campaigns import worth_rounds
from tasks.rounds import Plan, earlier, planned, play
from tasks.screen import Screened
from tasks.stoppable import stoppable
from tasks.wiring import House


def repeat(house: House, screened: Sequence[Screened], blob_root: str | None) -> dict[str, Any]:
    """Carry out every campaign after the first; what to add to the run's summary (nothing unless asked for)."""
    numbers = house.settings.numbers
    verdicts: Counter[str] = Counter()
    finished, stopped = [numbers[0]], None
    try:
        for number in numbers[1:]:
            verdicts.update(_campaign(house, screened, blob_root, number))
            finished.append(number)
    except OutOfTime as stop:
        stopped = str(stop)
        get_run_logger().info("the time is spent; stopped at %s", stopped)
    return _summary(house, finished, verdicts, stopped)


@stoppable(task_run_name="campaign {plan.number} of {plan.contest.definition.name}")
def campaign(house: House, plan: Plan) -> list[Decision]:
    """One campaign of one definition."""
    decisions = play(house, plan)
    for decision in decisions:
        get_run_logger().info("[%s] %s", decision.key, decision.reason)
    return decisions


def _campaign(house: House, screened: Sequence[Screened], blob_root: str | None, number: int) -> Counter[str]:
    """Verdicts of one campaign of all definitions; finished ones cost a look into the store."""
    plans = [planned(house, each, blob_root, number) for each in screened if worth_rounds(each.contest)]
    known = [(plan, earlier(house, plan)) for plan in plans]
    decisions = [found if found is not None else campaign(house, plan) for plan, found in known]
    return Counter(item.verdict for each in decisions for item in each)


def _summary(house: House, finished: list[int], verdicts: Counter[str], stopped: str | None) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    if house.settings.budget_s is not None:
        summary |= {"stopped": stopped is not None, "stopped_at": stopped}
    if len(house.settings.numbers) > 1:
        counts = {"asked": list(house.settings.numbers), "finished": finished, "verdicts": dict(verdicts)}
        summary |= {"campaigns": counts, "wall_s": round(house.budget.spent_s, 3)}  # the report's time was before these
    return summary

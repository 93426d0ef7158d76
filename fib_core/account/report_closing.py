"""The scores of a run in a few lines for a terminal.

In: facts of a run. Out: lines; each is left out where there is nothing to say.
"""

from fib_core.account.report_facts import RunFacts
from fib_core.account.report_page import duration, percent, seconds, title
from fib_core.account.scoring import AREA_TO, EVERY


def closing_lines(facts: RunFacts) -> list[str]:
    """Scores over all keys, calls served, the worst of the cold path."""
    return [line for line in (_confirmed_line(facts), _served_line(facts), _cold_line(facts)) if line]


def _confirmed_line(facts: RunFacts) -> str | None:
    """fast_1 and the area over all keys, or of the only definition."""
    found = [*facts.card.find("fast_p", 1.0), *facts.card.find("area", AREA_TO)]
    wanted = [item for item in found if item in facts.card.confirmed]
    shown = [item for item in wanted if item.definition == EVERY] or wanted[:2]
    if not shown:
        return None
    values = ", ".join(f"{title(item)} {item.value:.2f}" for item in shown)
    return f"scores       {values} over {shown[0].count} keys (confirmed estimates, each against its incumbent)"


def _served_line(facts: RunFacts) -> str | None:
    calls = sum(item.holdout_calls for item in facts.coverage)
    if not calls:
        return None
    served = sum(item.holdout_served for item in facts.coverage)
    return f"served       {percent(served / calls)} of {calls} held-out calls would run a promoted solution"


def _cold_line(facts: RunFacts) -> str | None:
    worst = facts.cold[0] if facts.cold else None
    if worst is None or worst["worst_first_call_us"] is None:
        return None
    builds = [row["build_s"] for row in facts.cold if row["build_s"] is not None]
    build = f"; slowest build {seconds(max(builds))}" if builds else ""
    return f"cold path    slowest first call {duration(worst['worst_first_call_us'])} ({worst['solution']}){build}"

"""What a run says that stopped before it could publish: how far it came, and that nothing is lost.

In: the house, the snapshot, where it stopped. Out: the summary, with the names of a finished run's where they have a
value; ``index_digest`` is None, since nothing was published.
"""

from typing import Any

from prefect import get_run_logger
from prefect.runtime import flow_run

from schemas.snapshot import Snapshot
from tasks.artifacts import show_markdown
from tasks.budget import OutOfTime
from tasks.wiring import House


def stopped(house: House, snapshot: Snapshot, definition_count: int, stop: OutOfTime) -> dict[str, Any]:
    """The summary of a stopped run; finished evaluations are in the store, the same command goes on with them."""
    counts, settings = house.budget.counts, house.settings
    summary = {
        "stopped": True,
        "stopped_at": str(stop),
        "definitions": {
            "total": definition_count, "screened": counts["screened"], "confirmed": counts["confirmed"],
        },
        "evaluations_measured": counts["measured"],
        "evaluations_found": counts["found"],
        "snapshot_digest": snapshot.digest,
        "index_digest": None,
        "channel": settings.channel,
        "profile": settings.profile,
        "flow_run_id": str(flow_run.id) if flow_run.id else None,
        "wall_s": round(house.budget.spent_s, 3),
    }  # fmt: skip
    get_run_logger().info("the time is spent; stopped at %s; nothing was published", stop)
    show_markdown("stopped", page(summary), "Where the run stopped.")
    return summary


def page(summary: dict[str, Any]) -> str:
    """The same for a person."""
    came = summary["definitions"]
    return (
        f"Stopped after {summary['wall_s']:.0f} s at {summary['stopped_at']}: {came['screened']} of {came['total']} "
        f"definitions screened, {came['confirmed']} confirmed; {summary['evaluations_measured']} evaluations measured, "
        f"{summary['evaluations_found']} found. Nothing was published in the channel {summary['channel']}; "
        "finished evaluations are kept. Start the same command again to go on."
    )

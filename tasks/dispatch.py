"""Stage 6 as the orchestrator treats it: decisions to a dispatch index."""

from collections.abc import Mapping, Sequence

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import dispatch as room
from schemas.decision import Decision
from schemas.index import DispatchIndex
from schemas.snapshot import Snapshot
from schemas.solution import Solution
from tasks.artifacts import show_table
from tasks.tables import index_rows
from tasks.wiring import House


@task(task_run_name="dispatch", cache_policy=NO_CACHE)
def dispatch(
    house: House, snapshot: Snapshot, decisions: Sequence[Decision], solutions: Mapping[str, Solution]
) -> DispatchIndex:
    """Build the index and prove that every key is reachable and none is shadowed."""
    index = room.build(
        snapshot, decisions, solutions, house.settings.profile,
        house.environment.device_class, house.environment.libraries,
    )  # fmt: skip
    rows = index_rows(index)
    show_table("dispatch-index", rows, f"Index {index.digest}: what serves each guarded key, and why.")
    get_run_logger().info("index %s: %d entries, %d solutions", index.digest, len(rows), len(index.solutions))
    return index

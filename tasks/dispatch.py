"""Stage 6 as the orchestrator treats it: decisions and how they were measured to a dispatch index."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import dispatch as room
from fib_core import ledger
from fib_core.index.evidence import Measured
from schemas.decision import Decision
from schemas.evaluation import Evaluation
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
    load = cache(partial(ledger.load, house.store, ledger.EVALUATIONS, model=Evaluation))
    measured = {item.digest: facts for item in decisions if (facts := measured_of(load, item)) is not None}
    index = room.build(
        snapshot, decisions, solutions, house.settings.profile,
        house.environment.device_class, house.environment.libraries, measured,
    )  # fmt: skip
    rows = index_rows(index)
    show_table("dispatch-index", rows, f"Index {index.digest}: what serves each guarded key, and why.")
    entries = sum(len(block.entries) for block in index.definitions)
    dropped = sum(block.dropped_count for block in index.definitions)
    get_run_logger().info(
        "index %s: %d entries, %d solutions; %d keys keep the incumbent and need no entry",
        index.digest, entries, len(index.solutions), dropped,
    )  # fmt: skip
    return index


def measured_of(load: Callable[[str], Evaluation], decision: Decision) -> Measured | None:
    """How a decision was measured, read from its evaluations (``load`` by digest); None where no round was run.

    Jobs of one decision share libraries, timer, mode and cache policy, so one evaluation tells of a kept key; behind a
    promotion every evaluation is read. Raises ``ObjectMissing`` or ``StoreRefused``: no entry without its evidence.
    """
    if not decision.evaluations:
        return None
    names = decision.evaluations if decision.verdict == "promoted" else decision.evaluations[:1]
    return Measured.of(load(name) for name in names)

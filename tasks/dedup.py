"""Stage 2 as the orchestrator treats it: one definition's calls (or workload rows) to few weighted workloads."""

from collections.abc import Sequence
from dataclasses import dataclass

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import dedup as room
from fib_core.decision.profiles import RULES
from schemas.definition import Definition
from schemas.trace import TraceRecord
from schemas.workload import Workload
from tasks.settings import Settings

STRESS_SLOTS = 1
"""Of the few workloads that a profile times, one is the stress gate's."""


@dataclass(frozen=True)
class Deduplicated:
    """Kept workloads and what was left out, with the share of calls that each kept workload stands for."""

    workloads: list[Workload]
    left_out: list[room.LeftOut]
    calls: int


@task(task_run_name="dedup {definition.name}", cache_policy=NO_CACHE)
def dedup(
    definition: Definition, records: Sequence[TraceRecord], rows: Sequence[Workload], settings: Settings
) -> Deduplicated:
    """Call logs win over workload rows; rows are all kept, since somebody chose them.

    Of a log those workloads are kept between which most calls lie: edges of groups, and held-out calls in between.
    """
    logger = get_run_logger()
    if not records:
        logger.info("%s: %d workload rows, no call log (weights: none)", definition.name, len(rows))
        return Deduplicated(list(rows), [], 0)
    timed = RULES[settings.profile].timed_limit
    selected = room.select(
        room.deduplicate(records, {definition.name: definition}, edges=True),
        settings.max_workloads,
        key=settings.split_key,
        decided=None if timed is None else timed - STRESS_SLOTS,
        records=records,
    )
    lost = sum(item.share for item in selected.left_out)
    logger.info(
        "%s: %d calls -> %d workloads, %d more left out (%.1f %% of calls)",
        definition.name, len(records), len(selected.kept), len(selected.left_out), 100 * lost,
    )  # fmt: skip
    return Deduplicated(selected.kept, selected.left_out, len(records))

"""Stage 7 as the orchestrator treats it: immutable objects first, then the channel pointer by compare-and-swap."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import publish as room
from schemas.evaluation import Evaluation
from schemas.index import ChannelPointer, DispatchIndex
from schemas.solution import Solution
from tasks.validity import spoiled
from tasks.wiring import House


@task(task_run_name="publish to {house.settings.channel}", cache_policy=NO_CACHE)
def publish(
    house: House, index: DispatchIndex, solutions: Mapping[str, Solution], evaluations: Iterable[Evaluation]
) -> ChannelPointer | None:
    """Publish, unless the machine spoiled too much of the run; the report says so and fails the run then.

    Raises PublishConflict if somebody else moved the channel, ContractError if the channel refuses this profile.
    """
    reason = spoiled(house.settings, evaluations)
    if reason is not None:
        get_run_logger().error("not published: %s", reason)
        return None
    now = datetime.now(UTC).isoformat(timespec="seconds")
    pointer = room.publish(house.store, index, solutions, house.settings.channel, now)
    get_run_logger().info("channel %s -> %s in %s", house.settings.channel, pointer.index_digest, house.store.url)
    return pointer

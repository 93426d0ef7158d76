"""Before the screen: compile what compiles, on all cores, while nothing is timed."""

import time
from collections.abc import Sequence

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from schemas.solution import Solution
from tasks.ahead import wait_for_ahead
from tasks.wiring import House


@task(task_run_name="build", cache_policy=NO_CACHE)
def build(house: House, solutions: Sequence[Solution]) -> None:
    """Fill the build cache; what does not compile becomes COMPILE_ERROR in its own visit."""
    compiled = [item for item in solutions if item.spec.language in ("cpp", "cuda")]
    started = time.monotonic()
    wait_for_ahead(house.settings.build_dir)
    house.runner.prepare(compiled, house.settings.build_limit_s)
    get_run_logger().info("%d solutions to compile, %.0f s", len(compiled), time.monotonic() - started)

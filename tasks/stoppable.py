"""Tasks that may run out of time. Stopping is no failure: the task run ends as ``Stopped``, the flow meets OutOfTime.

In: a function that may raise OutOfTime. Out: a task that ends with a state of its own then, since an exception would
be a failed task with a traceback on the run's page.
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import State, task
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from tasks.budget import OutOfTime

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def stoppable(task_run_name: str) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """A task whose caller meets OutOfTime, while its own run ends as ``Stopped`` instead of as a failure."""

    def wrap(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        def quietly(*args: Given.args, **more: Given.kwargs) -> Any:
            try:
                return function(*args, **more)
            except OutOfTime as stop:
                return Completed(name="Stopped", message=str(stop))

        functools.update_wrapper(quietly, function)  # Prefect names the run by the function's own parameters
        run: Callable[..., Any] = task(task_run_name=task_run_name, cache_policy=NO_CACHE)(quietly)

        @functools.wraps(function)
        def call(*args: Given.args, **more: Given.kwargs) -> Answer:
            answer = run(*args, **more)
            if isinstance(answer, State):
                raise OutOfTime(answer.message)
            found: Answer = answer
            return found

        return call

    return wrap

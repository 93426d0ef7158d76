"""More than the allowed share of INVALID stops publishing; one less does not."""

from types import SimpleNamespace
from typing import Any

import pytest

from schemas.evaluation import Status
from tasks.settings import Settings
from tasks.validity import spoiled


def _evaluations(invalid: int, passed: int) -> list[Any]:
    statuses = [Status.INVALID] * invalid + [Status.PASSED] * passed
    return [SimpleNamespace(status=status) for status in statuses]


@pytest.mark.parametrize(("invalid", "passed", "stops"), [(0, 0, False), (2, 98, False), (3, 97, True), (1, 0, True)])
def test_the_run_fails_only_above_two_percent_invalid(invalid: int, passed: int, stops: bool) -> None:
    reason = spoiled(Settings(), _evaluations(invalid, passed))
    assert (reason is not None) is stops
    assert reason is None or f"{invalid} of {invalid + passed}" in reason

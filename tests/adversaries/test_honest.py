"""Honest kernels pass, however awkward: autotuners, caches, threads, noise, global settings."""

import pytest

from fib_core.adapters.device_worker import DeviceWorker
from tests.adversaries.arena import HERE, honest_of, judge_honest, judge_row
from tests.adversaries.expectations import NOTHING, Row
from tests.adversaries.honest_files import DESTINATION_PASSING, HONEST

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("file", HONEST)
def test_an_honest_kernel_passes(worker: DeviceWorker, file: str) -> None:
    assert judge_honest(worker, file, "honest") == []


def test_an_honest_kernel_is_not_what_the_corpus_calls_caught(worker: DeviceWorker) -> None:
    row = Row("C0", "none", "an honest kernel taken for a cheat", NOTHING, "passed", true_us=2000.0)
    assert judge_row(worker, row, "honest", honest_of("h15_double_precision.py")) != []


def test_every_honest_file_is_listed() -> None:
    assert sorted(HONEST) == sorted(path.name for path in (HERE / "honest").iterdir() if path.suffix in (".py", ".cc"))
    assert set(HONEST) >= DESTINATION_PASSING
    assert len(HONEST) >= 20

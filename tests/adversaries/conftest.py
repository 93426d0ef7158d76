"""One worker for the whole corpus; everything that needs a compiler is compiled first, on every core."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from fib_core.adapters.device_worker import DeviceWorker
from tests.adversaries.arena import CACHE_PREFIX, prepare_all


@pytest.fixture(scope="session")
def worker() -> Iterator[DeviceWorker]:
    with (
        tempfile.TemporaryDirectory(prefix=CACHE_PREFIX) as cache,
        DeviceWorker(cache_dir=Path(cache)) as running,
    ):
        prepare_all(running)
        yield running
    for place in (Path(tempfile.gettempdir()), Path("/dev/shm")):
        for left in place.glob("fib-banked-*"):
            with suppress(OSError):
                left.unlink()

"""One worker for all device tests: its fork server costs seconds, every visit after it milliseconds."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fib_core.adapters.device_worker import DeviceWorker

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeviceWorker]:
    with DeviceWorker(cache_dir=tmp_path_factory.mktemp("build")) as running:
        running.warm()
        yield running

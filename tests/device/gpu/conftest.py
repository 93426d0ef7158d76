"""Tests of CUDA. The test process itself never touches CUDA: every trial runs in a process forked from it."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "builders")]


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from clock import compile_clock

    return compile_clock(tmp_path_factory.mktemp("clock"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # torch.cuda.is_available() would touch CUDA, and nothing could be forked afterwards.
    if shutil.which("nvidia-smi") is None:
        for item in items:
            if item.get_closest_marker("gpu") is not None:
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))

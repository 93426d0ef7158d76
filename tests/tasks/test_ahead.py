"""Compiling ahead: a head start that whoever builds waits for, and that never outlives its run."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tasks import ahead
from tasks.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
START = "from tasks import ahead; from tasks.settings import Settings; import time;"


def compiling(build_dir: Path) -> bool:
    lock = os.open(build_dir / "ahead.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def artefacts(build_dir: Path) -> list[Path]:
    return list(build_dir.glob("*/fib_solution.so"))


def helpers() -> list[psutil.Process]:
    return [item for item in psutil.Process().children() if "tasks.ahead" in " ".join(item.cmdline())]


@contextmanager
def stopped() -> Iterator[None]:
    """Nobody who compiles ahead gets on meanwhile: what is seen of it does not depend on who is faster."""
    held = helpers()
    assert len(held) == 1
    held[0].suspend()
    try:
        yield
    finally:
        held[0].resume()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


def test_whoever_builds_waits_and_then_finds_what_was_compiled(settings: Settings) -> None:
    ahead.start_ahead(settings, ["rmsnorm_h1024"])
    with stopped():
        assert compiling(settings.build_dir)
    ahead.wait_for_ahead(settings.build_dir)
    assert not compiling(settings.build_dir)
    assert artefacts(settings.build_dir)


def test_a_second_run_of_the_same_home_does_not_compile_the_same_twice(settings: Settings) -> None:
    ahead.start_ahead(settings, ["rmsnorm_h1024"])
    with stopped():
        mine = helpers()
        ahead.start_ahead(settings, ["rmsnorm_h1024"])
        assert helpers() == mine
    ahead.wait_for_ahead(settings.build_dir)


def test_a_killed_run_leaves_no_compilation_behind(tmp_path: Path) -> None:
    program = f"{START} ahead.start_ahead(Settings(home={str(tmp_path)!r}), None)"
    waiting = "; print('up', flush=True); time.sleep(600)"
    run = subprocess.Popen([sys.executable, "-c", program + waiting], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    assert run.stdout.readline() == "up\n"
    (helper,) = psutil.Process(run.pid).children()
    run.send_signal(signal.SIGKILL)
    run.wait()
    helper.wait(timeout=20)
    deadline = time.monotonic() + 20
    while compiling(tmp_path / "build") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not compiling(tmp_path / "build")


def test_a_standing_cluster_compiles_for_itself(tmp_path: Path) -> None:
    ahead.start_ahead(Settings(home=tmp_path, dask_address="tcp://127.0.0.1:1"), None)
    assert not (tmp_path / "build").exists()

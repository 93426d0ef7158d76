"""Pulling while something else happens: kill -9 midway, other pulls, readers."""

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.synchronize import Event as EventType
from pathlib import Path

import pytest

from fib_core.adapters.directory_store import DirectoryStore
from fib_core.runtime import index_client
from tests.runtime.published import (
    FUSED,
    FUSED_VALUE,
    SCALE,
    SCALE_DPS,
    SCALE_VALUE,
    index,
    publish,
    solution,
)  # fmt: skip

CHECKOUT = Path(__file__).parents[2]


def _first():
    return index((SCALE, [((2, 4), solution(SCALE, SCALE_VALUE))]), (FUSED, [((2, 4), solution(FUSED, FUSED_VALUE))]))


def _second():
    return index((SCALE, [((2, 8), solution(SCALE, SCALE_DPS, dps=True))]), note="2")


def _fused_only():
    return index((FUSED, [((2, 4), solution(FUSED, FUSED_VALUE))]))


class _Slow(DirectoryStore):
    """Stops for good before handing over the ``stop_at``-th object, and says so."""

    def __init__(self, root: Path, stop_at: int, stopped: EventType) -> None:
        super().__init__(root)
        self._left, self._stopped = stop_at, stopped

    def get(self, name: str):
        self._left -= 1
        if self._left == 0:
            self._stopped.set()
            time.sleep(600)
        return super().get(name)


def _pull_slowly(root: Path, cache: Path, stop_at: int, stopped: EventType) -> None:
    index_client.pull_from(_Slow(root, stop_at, stopped), "quick", cache)


@pytest.mark.parametrize("stop_at", [2, 3])
def test_a_pull_killed_midway_leaves_the_old_index_and_the_next_pull_works(tmp_path, stop_at):
    store, cache = DirectoryStore(tmp_path / "store"), tmp_path / "cache"
    old = publish(store, _first())
    index_client.pull_from(store, "quick", cache)
    new = publish(store, _second())
    fork = multiprocessing.get_context("fork")
    stopped = fork.Event()
    child = fork.Process(target=_pull_slowly, args=(tmp_path / "store", cache, stop_at, stopped), daemon=True)
    child.start()
    assert stopped.wait(60), "it came as far as that object"
    assert not _lock_is_free(cache)
    os.kill(child.pid, signal.SIGKILL)
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert index_client.load(cache).index_digest == old
    assert index_client.pull_from(store, "quick", cache).index_digest == new
    assert index_client.load(cache).index_digest == new
    assert not list(cache.rglob(".writing-*"))


def _lock_is_free(cache: Path) -> bool:
    import fcntl

    with (cache / ".pull.lock").open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_concurrent_pulls_and_readers_always_see_a_whole_index_and_the_pointer_never_goes_back(tmp_path):
    store, cache = DirectoryStore(tmp_path / "store"), tmp_path / "cache"
    digests = [publish(store, _first())]
    index_client.pull_from(store, "quick", cache)
    problems: list[BaseException] = []
    seen: list[str] = []
    done = threading.Event()
    jobs = [lambda: index_client.pull_from(DirectoryStore(tmp_path / "store"), "quick", cache)] * 2
    jobs.append(lambda: seen.append(index_client.load(cache).index_digest))
    threads = [threading.Thread(target=_repeat, args=(job, done, problems)) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        for note in "345":
            digests.append(publish(store, index((SCALE, [((2, 8), solution(SCALE, SCALE_VALUE))]), note=note)))
            time.sleep(0.1)
        index_client.pull_from(store, "quick", cache)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert problems == []
    order = [digests.index(digest) for digest in seen]
    assert order == sorted(order)
    assert index_client.load(cache).index_digest == digests[-1]


def _repeat(job, done: threading.Event, problems: list[BaseException]) -> None:
    while not done.is_set():
        try:
            job()
        except Exception as error:
            problems.append(error)

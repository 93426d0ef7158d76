"""What only the directory promises: many processes, sudden death, and the order in which bytes become durable."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fib_core.adapters.directory_store import STALE_AFTER_S, DirectoryStore
from fib_core.errors import ContractError, DeviceError, ObjectMissing, PublishConflict, StoreRefused
from fib_core.ports import ObjectStore
from tests.fakes.memory_store import MemoryStore

HERE = Path(__file__).parent
RACERS, RACES, INCREMENTS = 16, 10, 10


def writers(task: str, root: Path, *more: object) -> str:
    """Run the helper script, which forks writer processes; its last line of output."""
    command = [sys.executable, str(HERE / "directory_store_writers.py"), task, str(root), *map(str, more)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=HERE.parents[1])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_of_sixteen_racing_processes_exactly_one_wins_each_key(tmp_path: Path) -> None:
    assert writers("race", tmp_path, RACERS, RACES) == f"winners per key: {[1] * RACES}"
    assert len(list(DirectoryStore(tmp_path).keys("race/"))) == RACES


def test_no_increment_is_lost_between_sixteen_processes(tmp_path: Path) -> None:
    writers("count", tmp_path, RACERS, INCREMENTS)
    assert int(DirectoryStore(tmp_path).get("counter").body) == RACERS * INCREMENTS


def test_writers_killed_at_any_moment_leave_only_whole_objects_and_a_store_that_works(tmp_path: Path) -> None:
    report = writers("kill", tmp_path, "atomic")
    assert report.startswith("torn 0 "), report
    store = DirectoryStore(tmp_path)
    assert all(not part.startswith(".") for key in store.keys("") for part in key.split("/"))
    assert len(list(store.keys("kill/"))) > 10
    pointer = store.get("kill-pointer")
    store.swap("kill-pointer", b"alive", pointer.etag)
    assert store.put_once("after", b"alive") is True


def test_the_killing_does_catch_a_writer_that_writes_in_place(tmp_path: Path) -> None:
    report = writers("kill", tmp_path, "in-place")
    assert int(report.split()[1]) > 0, report


def test_bytes_are_synced_before_their_name_appears_and_the_folder_before_the_caller_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, steps = DirectoryStore(tmp_path), []
    tag = store.swap("p/q", b"0", None)
    sync, link, replace = os.fsync, os.link, Path.replace

    def note(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def noted(*args: object) -> object:
            folder = name == "sync" and os.path.isdir(f"/proc/self/fd/{args[0]}")  # noqa: PTH112
            steps.append("sync folder" if folder else name)
            return real(*args)

        return noted

    monkeypatch.setattr(os, "fsync", note("sync", sync))
    monkeypatch.setattr(os, "link", note("name", link))
    monkeypatch.setattr(Path, "replace", note("name", replace))
    store.put_once("p/r", b"1")
    store.swap("p/q", b"2", tag)
    assert steps == ["sync", "name", "sync folder"] * 2


KEYS = st.sampled_from(["a", "b/c", "b-c", "b/c2", "d/e/f"])
STEPS = st.lists(st.tuples(st.sampled_from(["put", "swap", "swap absent", "swap stale"]), KEYS, st.binary(max_size=3)))


def answer(store: ObjectStore, action: str, key: str, body: bytes) -> object:
    """What one step says, with tags (which differ between stores) left out."""
    try:
        if action == "put":
            return store.put_once(key, body)
        tag = store.get(key).etag if action == "swap" else {"swap absent": None, "swap stale": "0" * 64}[action]
        return store.swap(key, body, tag) == store.get(key).etag
    except (ObjectMissing, PublishConflict) as error:
        return type(error)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS)
def test_any_history_ends_as_it_does_in_memory(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple]) -> None:
    memory, root = MemoryStore(), tmp_path_factory.mktemp("store")
    for step in steps:
        assert answer(DirectoryStore(root), *step) == answer(memory, *step), step
    assert {key: DirectoryStore(root).get(key).body for key in DirectoryStore(root).keys("")} == memory.objects


def test_leftovers_of_the_killed_are_invisible_and_swept_once_old(tmp_path: Path) -> None:
    (tmp_path / ".tmp").mkdir()
    fresh, old = tmp_path / ".tmp" / "1-fresh", tmp_path / ".tmp" / "1-old"
    for path in (fresh, old):
        path.write_bytes(b"half")
    os.utime(old, (0, old.stat().st_mtime - STALE_AFTER_S - 60))
    store = DirectoryStore(tmp_path)
    assert list(store.keys("")) == []
    store.put_once("a", b"1")
    assert list(store.keys("")) == ["a"]
    assert fresh.exists()
    assert not old.exists()


def test_opening_and_reading_create_nothing(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "none")
    assert list(store.keys("a/")) == []
    with pytest.raises(ObjectMissing):
        store.get("a/b")
    assert not (tmp_path / "none").exists()


def test_a_store_that_was_removed_under_us_is_made_again(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "s")
    store.put_once("a/b", b"1")
    (tmp_path / "s").rename(tmp_path / "moved")
    assert store.put_once("a/b", b"2") is True
    assert store.get("a/b").body == b"2"


def test_a_key_cannot_be_object_and_folder_at_once(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.put_once("a/b", b"1")
    with pytest.raises(ContractError, match="folder"):
        store.put_once("a", b"2")
    with pytest.raises(ContractError, match="object"):
        store.put_once("a/b/c", b"3")
    assert list(store.keys("")) == ["a/b"]


def test_foreign_files_are_not_keys(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.put_once("a", b"1")
    (tmp_path / "notes of a person.txt").write_text("x")
    (tmp_path / ".DS_Store").write_text("x")
    assert list(store.keys("")) == ["a"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreRefused, match="owner"):
        DirectoryStore(tmp_path).put_once("a", b"1")


def test_a_failing_disk_is_the_machines_fault_and_leaves_no_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectoryStore(tmp_path)
    store.put_once("a", b"1")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DeviceError, match="No space left"):
        store.put_once("b", b"2")
    monkeypatch.undo()
    assert list(store.keys("")) == ["a"]
    assert list((tmp_path / ".tmp").iterdir()) == []


def test_a_lock_that_nobody_gives_back_is_reported_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    store = DirectoryStore(tmp_path)
    tag = store.swap("p", b"1", None)
    monkeypatch.setattr("fib_core.adapters.directory_store.LOCK_TIMEOUT_S", 0.05)
    with (tmp_path / ".lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(DeviceError, match="locked"):
            store.swap("p", b"2", tag)
    store.swap("p", b"2", tag)
    assert store.get("p").body == b"2"

"""A confined candidate writes its scratch and nothing else; each refusal beside the same act where it may."""

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forked import LIMITS, confined, free, needs_landlock, needs_seccomp, refused, succeeds

from fib_core.device import sandbox
from fib_core.device.scratch import settle

WRITES: dict[str, Callable[[Path], Any]] = {
    "create": lambda place: (place / "new").write_text("x"),
    "overwrite": lambda place: (place / "old").write_text("x"),
    "append": lambda place: (place / "old").open("a").close(),
    "truncate": lambda place: os.truncate(place / "old", 0),
    "remove": lambda place: (place / "old").unlink() is None,
    "rename": lambda place: (place / "old").rename(place / "other") and 1,
    "make_directory": lambda place: (place / "new").mkdir() is None,
    "remove_directory": lambda place: (place / "empty").rmdir() is None,
    "link": lambda place: (place / "new").symlink_to("old") is None,
    "hard_link": lambda place: (place / "new").hardlink_to(place / "old") is None,
    "fifo": lambda place: os.mkfifo(place / "new") is None,
}


def room(place: Path) -> Path:
    (place / "empty").mkdir(parents=True)
    (place / "old").write_text("as it was")
    return place


@needs_landlock
@pytest.mark.parametrize("name", WRITES)
def test_a_candidate_writes_below_its_scratch_and_nowhere_else(tmp_path: Path, name: str) -> None:
    act, scratch = WRITES[name], room(tmp_path / "scratch")
    outside, control = room(tmp_path / "outside"), room(tmp_path / "control")
    assert succeeds(free(lambda: act(control))), "control"
    assert succeeds(confined(lambda: act(scratch), scratch))
    assert refused(confined(lambda: act(outside), scratch), errno.EACCES)
    assert sorted(path.name for path in outside.iterdir()) == ["empty", "old"]
    assert (outside / "old").read_text() == "as it was"


@needs_seccomp
def test_a_candidate_changes_no_file_permissions(tmp_path: Path) -> None:
    outside = room(tmp_path / "outside")
    assert free(lambda: (outside / "old").chmod(0o640) is None) is True
    assert refused(confined(lambda: (outside / "old").chmod(0o600)))
    assert refused(confined(lambda: os.chown(outside / "old", os.getuid(), os.getgid())))


@needs_landlock
def test_a_candidate_does_not_write_its_own_memory_through_proc() -> None:
    def act() -> None:
        Path("/proc/self/mem").open("r+b").close()

    assert free(act) is None
    assert refused(confined(act))
    assert confined(lambda: Path("/proc/self/maps").read_text() != "") is True


@needs_landlock
def test_the_bit_bucket_and_reading_stay_open(tmp_path: Path) -> None:
    (tmp_path / "readable").write_text("data")
    assert confined(lambda: Path("/dev/null").write_text("x")) == 1
    assert confined((tmp_path / "readable").read_text) == "data"
    python = [sys.executable, "-S", "-c", "print(6 * 7)"]
    assert confined(lambda: subprocess.run(python, capture_output=True).stdout) == b"42\n"


def test_caches_and_temporary_files_land_below_the_scratch(tmp_path: Path) -> None:
    scratch = room(tmp_path / "scratch")
    tempfile.gettempdir()  # remembered before the fork, as a fork server's is

    def act() -> list[Path]:
        settle(scratch)
        sandbox.confine(replace(LIMITS, writable=(str(scratch),)))
        with tempfile.NamedTemporaryFile() as file:
            (Path.home() / "kept").write_text("x")
            made = subprocess.run(["mktemp"], capture_output=True, text=True).stdout.strip()
            return [Path(file.name), Path.home(), Path(made)]

    found = free(act)
    assert all(path.is_relative_to(scratch) for path in found), found
    assert not Path(tempfile.gettempdir()).is_relative_to(scratch), "only the child moved"

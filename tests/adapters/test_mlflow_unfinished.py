"""A tracking database whose making was cut short is made anew; one that was ever whole is kept."""

import sqlite3
from pathlib import Path

import pytest

from fib_core.adapters.mlflow_tracker import MlflowTracker

MARKER = ".mlflow.db.unfinished"


def _half_made(home: Path) -> None:
    """What a process killed in the middle of the migrations leaves."""
    folder = home / "mlflow"
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "mlflow.db") as database:
        database.execute("CREATE TABLE runs (run_uuid VARCHAR(32))")
        database.execute("CREATE TABLE _alembic_tmp_runs (run_uuid VARCHAR(32))")
    database.close()


def test_a_database_whose_making_was_cut_short_is_made_anew(tmp_path: Path) -> None:
    _half_made(tmp_path)
    (tmp_path / "mlflow" / MARKER).touch()
    tracker = MlflowTracker(home=tmp_path)
    run_id = tracker.log_run("first", {"a": "1"}, {}, {}, {}, {}, [])
    assert run_id in tracker.run_url(run_id)
    assert not (tmp_path / "mlflow" / MARKER).exists()
    again = MlflowTracker(home=tmp_path)
    assert run_id in again.run_url(run_id), "what is whole stays, with its runs"


def test_a_broken_database_that_nobody_marked_is_not_thrown_away(tmp_path: Path) -> None:
    _half_made(tmp_path)
    with pytest.raises(Exception):  # noqa: B017 - whatever the database driver says
        MlflowTracker(home=tmp_path).prepare()
    with sqlite3.connect(tmp_path / "mlflow" / "mlflow.db") as database:
        names = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    database.close()
    assert "_alembic_tmp_runs" in names

"""The A/A benchmark asks for what a user would type: a dataset, a time, perhaps a part of the definitions."""

import argparse
from itertools import pairwise
from pathlib import Path

import pytest

from tests.benchmarks import bench_aa


def _command(definitions: list[str]) -> list[str]:
    given = argparse.Namespace(dataset=Path("data_cuda"), profile="full", campaigns=50, definition=definitions)
    return bench_aa.command(given, 90.0)


def test_a_part_of_the_definitions_can_have_slices_of_its_own() -> None:
    words = _command(["aa_series", "slow2_series"])
    named = [after for word, after in pairwise(words) if word == "--definition"]
    assert named == ["aa_series", "slow2_series"]
    assert words[-2:] == ["--for", "90s"]


def test_without_a_list_all_definitions_are_asked_for() -> None:
    assert "--definition" not in _command([])


def test_a_slice_finds_the_packages_that_pythonpath_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere/site")
    found = bench_aa.environment_at(tmp_path)
    assert found["PYTHONPATH"].split(":") == [str(bench_aa.ROOT), "/somewhere/site"]
    assert found["FIB_HOME"] == str(tmp_path)
    monkeypatch.delenv("PYTHONPATH")
    assert bench_aa.environment_at(tmp_path)["PYTHONPATH"] == str(bench_aa.ROOT)

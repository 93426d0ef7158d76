"""Runs with a time budget, several campaigns and a remeasurement, as a user starts them, on the tiny dataset."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.flows import tiny_dataset
from tests.flows.standing import environment, fib_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
BUDGETS_S = (12, 24, 48, 96, 192, 384)
"""Of one slice after the other, so that a slow machine ends too."""


def _run(dataset: Path, home: Path, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [*fib_run(dataset), *more], env=environment(home), capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _names(home: Path, kind: str) -> set[str]:
    return {path.name for path in (home / "store" / kind).glob("*.json")}


def _slices(dataset: Path, home: Path, *more: str) -> list[dict[str, Any]]:
    """Summaries of slices until one was not stopped."""
    summaries = []
    for budget_s in BUDGETS_S:
        summaries.append(_run(dataset, home, *more, "--for", f"{budget_s}s"))
        if not summaries[-1]["stopped"]:
            return summaries
    raise AssertionError(f"still not done after {BUDGETS_S}: {summaries[-1]}")


def test_a_run_cut_in_slices_decides_exactly_what_one_whole_run_decides(tmp_path: Path) -> None:
    dataset, home = tiny_dataset.write(tmp_path / "dataset"), tmp_path / "home"
    summaries = _slices(dataset, home)
    assert len(summaries) > 1
    assert [item["index_digest"] for item in summaries[:-1]] == [None] * (len(summaries) - 1), "nothing is published"
    pointers, bodies = _names(home, "evaluations/by-job"), _names(home, "evaluations")
    assert len(pointers) == len(bodies), "no evaluation was measured twice"
    assert sum(item.get("evaluations_measured", 0) for item in summaries[:-1]) <= len(bodies)
    whole = tmp_path / "whole"
    # The samples alone: a run that knows nothing else decides from them.
    shutil.copytree(home / "store/evaluations", whole / "store/evaluations")
    once = _run(dataset, whole)
    assert _names(whole, "evaluations/by-job") == pointers
    for name in ("snapshot_digest", "index_digest", "evaluations", "promoted", "kept_incumbent"):
        assert once[name] == summaries[-1][name], name
    assert "stopped" not in once, "a run without a budget says nothing of it"


def test_campaigns_accumulate_over_slices_and_publish_the_first_alone(tmp_path: Path) -> None:
    dataset, home = tiny_dataset.write(tmp_path / "dataset"), tmp_path / "home"
    first = _run(dataset, home)
    asked = ("--campaigns", "3")
    slices = _slices(dataset, home, *asked)
    assert slices[-1]["campaigns"]["finished"] == [0, 1, 2]
    assert {item["index_digest"] for item in slices} == {first["index_digest"]}
    decisions = [json.loads(path.read_text()) for path in (home / "store/decisions").glob("*.json")]
    assert {item.get("campaign", 0) for item in decisions} == {0, 1, 2}
    before = _names(home, "evaluations/by-job")
    _run(dataset, home, *asked)
    assert _names(home, "evaluations/by-job") == before


def test_a_published_index_is_measured_again_and_stays_as_it_is(tmp_path: Path) -> None:
    dataset, home = tiny_dataset.write(tmp_path / "dataset"), tmp_path / "home"
    summary = _run(dataset, home)
    pointer = (home / "store/channels/quick.json").read_bytes()
    before = _names(home, "evaluations/by-job")
    command = [*fib_run(dataset)[:-4], "remeasure", "--dataset", str(dataset), "--channel", "quick", "--json"]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout)
    assert answer["index_digest"] == summary["index_digest"]
    assert answer["promoted"] == len(summary["promoted"]) == answer["compared"] + answer["not_compared"]
    assert answer["reversing"] == 0, "what is several times faster does not turn slower"
    assert (home / "store/channels/quick.json").read_bytes() == pointer
    fresh = _names(home, "evaluations/by-job") - before
    assert len(fresh) >= 2 * answer["promoted"] * 8, "new rounds, not the old ones"
    assert len(_names(home, "remeasured")) == 1
    elsewhere = subprocess.run(
        [*command, "--definition", "nobody"], env=environment(home), capture_output=True, text=True, timeout=500,
        check=False,
    )  # fmt: skip
    assert elsewhere.returncode == 2
    assert "no definition named 'nobody'" in elsewhere.stderr

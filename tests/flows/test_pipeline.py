"""The whole road as a user runs it, on a tiny dataset with real processes: run, resume after kill -9, consume."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fib_core.adapters.directory_store import DirectoryStore
from fib_core.publication.history import current
from fib_core.publish import Terms, publish, read_index, rollback
from tests.flows import tiny_dataset

pytestmark = pytest.mark.timeout(600)
CHECKOUT = Path(__file__).resolve().parents[2]
_FLOW_ALONE = """
import sys
from tasks.quiet import prepare_environment
from tasks.settings import Settings
if __name__ == "__main__":
    prepare_environment(Settings().home)
    from flows.pipeline import pipeline
    pipeline(sys.argv[1], channel="stable")
"""


def _environment(home: Path) -> dict[str, str]:
    return os.environ | {"FIB_HOME": str(home), "PYTHONPATH": str(CHECKOUT)}


def _command(dataset: Path) -> list[str]:
    return [sys.executable, "-c", "from flows.cli import main; main()", "run", "--dataset", str(dataset), "--json"]


def _run(dataset: Path, home: Path) -> dict[str, Any]:
    done = subprocess.run(
        _command(dataset), env=_environment(home), capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def _evaluations(home: Path) -> set[str]:
    folder = home / "store" / "evaluations" / "by-job"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    root = tmp_path_factory.mktemp("road")
    dataset, home = tiny_dataset.write(root / "dataset"), root / "home"
    return dataset, home, _run(dataset, home)


def test_the_summary_has_the_contracts_shape_and_its_counts_add_up(
    first_run: tuple[Path, Path, dict[str, Any]],
) -> None:
    _, home, summary = first_run
    assert set(summary) >= {
        "snapshot_digest", "index_digest", "channel", "profile", "op_types", "evaluations", "promoted",
        "kept_incumbent", "flow_run_id", "mlflow_run_id", "wall_s",
    }  # fmt: skip
    assert set(summary) >= {"scores", "cold", "coverage", "accounts"}  # beyond the contract, under names of their own
    assert sum(summary["accounts"]["keys"].values()) == len(summary["promoted"]) + summary["kept_incumbent"]
    snapshot = json.loads((home / f"store/snapshots/{summary['snapshot_digest'][7:]}.json").read_text())
    assert sum(summary["evaluations"].values()) == len(snapshot["workloads"]) * len(tiny_dataset.SOLUTIONS)
    index = json.loads((home / f"store/indexes/{summary['index_digest'][7:]}.json").read_text())
    for block in index["definitions"]:
        promoted = {item["key"] for entry in block["entries"] for item in entry["evidence"]}
        assert promoted == {item["key"] for item in summary["promoted"] if item["definition"] == block["name"]}
    assert summary["kept_incumbent"] == sum(len(block.get("kept", ())) for block in index["definitions"])


def test_a_faster_candidate_is_promoted_and_an_equal_or_wrong_one_is_not(
    first_run: tuple[Path, Path, dict[str, Any]],
) -> None:
    _, _, summary = first_run
    assert {item["solution"] for item in summary["promoted"]} == {"direct"}
    assert all(item["interval"][0] > 1.0 for item in summary["promoted"])
    assert summary["evaluations"]["INCORRECT_NUMERICAL"] > 0


@pytest.mark.slow
def test_a_channel_that_would_refuse_the_index_ends_the_flow_before_anything_is_measured(tmp_path: Path) -> None:
    """A deployment starts the flow without the command line, which would have asked before."""
    dataset = str(tiny_dataset.write(tmp_path / "dataset"))
    command = [sys.executable, "-c", _FLOW_ALONE, dataset]
    done = subprocess.run(
        command, env=_environment(tmp_path / "home"), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1
    assert "ContractError: the channel stable takes no index of the profile quick; run the profile full" in done.stderr
    assert not (tmp_path / "home/store/snapshots").exists()


def test_a_second_run_measures_nothing_and_decides_the_same(first_run: tuple[Path, Path, dict[str, Any]]) -> None:
    dataset, home, summary = first_run
    before = _evaluations(home)
    again = _run(dataset, home)
    assert _evaluations(home) == before
    for name in ("snapshot_digest", "index_digest", "not_published", "evaluations", "promoted", "kept_incumbent"):
        assert again[name] == summary[name], name


@pytest.mark.slow
def test_a_run_that_makes_again_what_was_rolled_back_ends_well_and_leaves_the_channel(
    first_run: tuple[Path, Path, dict[str, Any]],
) -> None:
    dataset, home, summary = first_run
    store, terms = DirectoryStore(home / "store"), Terms(lambda get, digest: None, "2026-01-01T00:00:00+00:00")
    made = read_index(store, summary["index_digest"])
    other = made.model_copy(update={"definitions": ()})
    publish(store, other.model_copy(update={"solutions": ()}), {}, "quick", terms)
    rollback(store, "quick", made.digest, terms)
    stays = rollback(store, "quick", None, terms)
    again = _run(dataset, home)
    assert again["index_digest"] == made.digest
    assert again["not_published"].startswith(f"{made.digest} was rolled back from quick at {stays.published_at}")
    assert current(store, "quick") == stays
    rollback(store, "quick", made.digest, terms)


def test_a_run_killed_anywhere_goes_on_without_repeating_a_finished_evaluation(tmp_path: Path) -> None:
    dataset = tiny_dataset.write(tmp_path / "dataset")
    for number in range(3):  # where this process stalls, the run may end before it is killed: that is no test
        home = tmp_path / f"home-{number}"
        if (code := _killed_run(dataset, home, tmp_path / f"log-{number}")) == -signal.SIGKILL:
            break
    assert code == -signal.SIGKILL
    survivors = {name: _digest_of(home, name) for name in _evaluations(home)}
    summary = _run(dataset, home)
    assert {item["solution"] for item in summary["promoted"]} == {"direct"}
    assert {name: _digest_of(home, name) for name in survivors} == survivors
    settled = json.loads((home / f"store/indexes/{summary['index_digest'][7:]}.json").read_text())
    entries = [entry for block in settled["definitions"] for entry in block["entries"]]
    evidence = [item["decision_digest"] for entry in entries for item in entry["evidence"]]
    used = {digest for item in evidence for digest in _decision(home, item)["evaluations"]}
    assert used & set(survivors.values()), "the decisions rest on samples from before the kill too"


def _killed_run(dataset: Path, home: Path, log: Path) -> int:
    """Exit code of a run that was killed, with all that it started, about a quarter of its way."""
    with log.open("w") as out:
        victim = subprocess.Popen(
            _command(dataset), env=_environment(home), stdout=out, stderr=out, start_new_session=True
        )
        _wait_for_evaluations(home, victim, at_least=40, log=log)
        os.killpg(victim.pid, signal.SIGKILL)
        return victim.wait()


def _wait_for_evaluations(home: Path, process: "subprocess.Popen[bytes]", at_least: int, log: Path) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if len(_evaluations(home)) >= at_least:
            return
        assert process.poll() is None, f"the run ended before it could be killed: {log.read_text()[-3000:]}"
        time.sleep(0.02)
    raise AssertionError(f"only {len(_evaluations(home))} evaluations after 300 s: {log.read_text()[-3000:]}")


def _digest_of(home: Path, pointer: str) -> str:
    body = json.loads((home / "store/evaluations/by-job" / pointer).read_text())
    return str(body["evaluation"])


def _decision(home: Path, digest: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((home / f"store/decisions/{digest[7:]}.json").read_text())
    return body

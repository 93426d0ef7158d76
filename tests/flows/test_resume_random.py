"""A run killed at random moments goes on each time: nothing measured twice, nothing lost, nothing left behind.

Only the process that the user started is killed; whatever it started has to notice by itself.
"""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.flows import tiny_dataset
from tests.flows.standing import environment, fib_run, summary_of, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
KILLS = 5
GRACE_S = 60.0
RUN_LIMIT_S = 500.0


def _recorded(home: Path) -> dict[str, str]:
    """Job -> digest of the evaluation that answers it."""
    folder = home / "store/evaluations/by-job"
    paths = folder.glob("*.json") if folder.exists() else ()
    return {path.name: str(json.loads(path.read_text())["evaluation"]) for path in paths}


def _bodies(home: Path, kind: str) -> dict[str, dict[str, Any]]:
    folder = home / "store" / kind
    return {f"sha256:{path.stem}": json.loads(path.read_text()) for path in folder.glob("*.json")}


def _of_this_home(home: Path) -> list[psutil.Process]:
    """Every process that was started for this home, whoever its parent is now."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("FIB_HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def _kill_at(dataset: Path, env: dict[str, str], home: Path, more: int, delay_s: float, log: Path) -> int:
    """Start the run, wait for ``more`` new evaluations and then ``delay_s``, kill it; gives its exit code."""
    goal = len(_recorded(home)) + more
    with log.open("w") as out:
        victim = subprocess.Popen(fib_run(dataset), env=env, stdout=out, stderr=out)
        try:
            wait_until(lambda: len(_recorded(home)) >= goal or victim.poll() is not None, f"{goal} jobs", RUN_LIMIT_S)
            time.sleep(delay_s)
        finally:
            victim.send_signal(signal.SIGKILL)
        return victim.wait(timeout=60)


@pytest.fixture(scope="module")
def seed() -> int:
    """Printed by the test, so that a failure can be walked again: FIB_TEST_SEED=n pytest ..."""
    return int(os.environ.get("FIB_TEST_SEED") or random.SystemRandom().randrange(10**6))


def test_a_run_killed_at_random_moments_repeats_loses_and_leaves_nothing(tmp_path: Path, seed: int) -> None:
    print(f"FIB_TEST_SEED={seed}")
    draw = random.Random(seed)
    home, temporary = tmp_path / "home", tmp_path / "tmp"
    temporary.mkdir()
    dataset = tiny_dataset.write(tmp_path / "dataset")
    env = environment(home, TMPDIR=str(temporary))
    codes = []
    for number in range(KILLS):
        before, more, delay_s = _recorded(home), draw.randint(0, 15), draw.uniform(0, 1.5)
        code = _kill_at(dataset, env, home, more, delay_s, tmp_path / f"log-{number}")
        codes.append(code)
        after = _recorded(home)
        print(f"kill {number}: {len(before)} -> {len(after)} evaluations, {delay_s:.2f} s later, exit {code}")
        assert {job: after.get(job) for job in before} == before, "what was finished stays as it was"
        wait_until(lambda: not _of_this_home(home), "every process of the killed run ended", GRACE_S)
    assert -signal.SIGKILL in codes, "the control: a run was killed, none of them may have ended before"
    survivors = _recorded(home)
    summary = summary_of(dataset, env)
    final = _recorded(home)
    again = summary_of(dataset, env)
    assert {job: final[job] for job in survivors} == survivors
    bodies = _bodies(home, "evaluations").keys()
    assert set(final.values()) <= bodies, "no job points to nothing"
    assert len(bodies - set(final.values())) <= KILLS, "a kill may fall between an evaluation and its job, no more"
    assert {item["solution"] for item in summary["promoted"]} == {"direct"}
    for name in ("snapshot_digest", "index_digest", "evaluations", "promoted", "kept_incumbent"):
        assert again[name] == summary[name], f"{name}: decided again from the store's samples alone"
    assert _recorded(home) == final, "and nothing was measured for it"
    _rests_on(home, summary, set(final.values()), set(survivors.values()))
    wait_until(lambda: not _of_this_home(home), "every process of a finished run ended", GRACE_S)
    assert sorted(path.name for path in temporary.glob("fib-visit-*")) == []


def _rests_on(home: Path, summary: dict[str, Any], known: set[str], survivors: set[str]) -> None:
    """Every promotion is found in the store, and its evidence too; the ratios are those of the stored decisions."""
    index = _bodies(home, "indexes")[summary["index_digest"]]
    decisions = _bodies(home, "decisions")
    entries = [entry for each in index["definitions"] for entry in each["entries"]]
    named = {item["decision_digest"] for entry in entries for item in entry["evidence"]}
    published = [decisions[digest] for digest in named]
    evidence = {digest for decision in published for digest in decision["evaluations"]}
    assert evidence <= known
    assert evidence & survivors, "the decisions rest on samples from before the last kill too"
    assert len([one for one in published if one["verdict"] == "promoted"]) == len(summary["promoted"])

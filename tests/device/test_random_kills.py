"""Killed at a random moment: no machine's fault becomes a verdict, nothing outlives it, nothing finished is lost.

A moment is a share of a visit of this host, from a seed that a failure prints; ``FIB_KILL_SEED`` repeats it. A blow
that comes after the end is no test: fresh moments follow until the wanted number of blows hit.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blows import Blow, left_in
from kernels import ADD, solution
from killed_runs import KERNEL, OTHER, PLAIN, Struck, asked, house_of, killed_run, start_s
from moments import SEED, TRIES, Pace, shares

from fib_core.adapters.device_worker import DeviceWorker
from schemas.evaluation import Status
from schemas.solution import Solution
from tasks.visits import settle

READY_S = 2.0  # beyond what a visit takes on this host at that moment
ZYGOTE_START_S = 60.0  # whoever lost its fork server imports torch again
CHILD = """
import os, subprocess
name = os.environ["TMPDIR"] + "/followed"
open(name, "w").close()
subprocess.Popen(["tail", "-f", name])
"""  # in the candidate's group
# Child and grandchild lead sessions of their own: in nobody's group, and the grandchild nobody's direct child.
NESTED = '"sh", "-c", "setsid tail -f $0 & exec tail -f $0", name], start_new_session=True'
NEST = CHILD.replace('"tail", "-f", name]', NESTED)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A temporary directory, hence a lock, of its own: visits of other tests neither wait nor are waited for."""
    directory = tmp_path_factory.mktemp("kills")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(directory))
        patch.setattr(tempfile, "tempdir", str(directory))
        yield directory


@pytest.fixture(scope="module")
def own(place: Path) -> Iterator[DeviceWorker]:
    with DeviceWorker(cache_dir=place / "build") as worker:
        assert worker.visit(asked()).fault is None  # a first visit also measures the host
        yield worker


@pytest.fixture(scope="module")
def pace(own: DeviceWorker) -> Pace:
    return Pace(min(own.visit(asked()).wall_s for _ in range(5)))


def recovers(worker: DeviceWorker, place: Path, pace: Pace, told: str, within_s: float = READY_S) -> None:
    """The next visit works, soon, and nothing is left of the one before."""
    started = time.monotonic()
    after = worker.visit(asked())
    wall_s = time.monotonic() - started
    assert [item.status for item in after.evaluations] == [Status.PASSED] * 4, (told, after.fault)
    usual_s = worker.visit(asked()).wall_s if wall_s >= within_s else 0.0  # a host with all cores busy is slow as well
    assert wall_s - usual_s < within_s, (told, wall_s, usual_s)
    assert left_in(place, worker) == [], told
    assert list(place.glob("fib-visit-*")) == [], told
    pace.learn(after.wall_s)


def disturbed(worker: DeviceWorker, place: Path, pace: Pace, role: str, share: float, *entrants: Solution) -> bool:
    """One visit with one blow, then an undisturbed one. Did the blow hit: was somebody struck, and the visit spoiled?

    A candidate's death spoils nothing, which is the promise; nor does that of a helper which has given its last answer.
    """
    worker.warm()
    before, blow = worker.zygote_pid, Blow(worker, role, share * pace.visit_s)
    hurt = blow.during(lambda: worker.visit(asked(*entrants)))
    told = f"seed {SEED}, {role} after {share:.4f} of {pace.visit_s:.4f} s, pid {blow.struck}: {hurt.fault}"
    statuses = [(item.status, item.rule, item.reason) for item in hurt.evaluations]
    if hurt.fault is None:
        assert statuses == [(Status.PASSED, None, "")] * 4, (told, statuses)
    else:
        assert role != "candidate", told
        assert blow.struck is not None, told
        assert statuses == [], told
        assert hurt.fault.cause == f"{role}_died", told
    assert role == "zygote" or worker.zygote_pid == before, f"the fork server survives: {told}"
    recovers(worker, place, pace, told, ZYGOTE_START_S if role == "zygote" else READY_S)
    return blow.struck is not None and (role == "candidate" or hurt.fault is not None)


def disturbed_often(
    worker: DeviceWorker, place: Path, pace: Pace, role: str, wanted: int, name: str, *entrants: Solution
) -> None:
    """Fresh moments until ``wanted`` blows hit."""
    hits = 0
    for share in shares(name, TRIES * wanted):
        hits += disturbed(worker, place, pace, role, share, *entrants)
        if hits == wanted:
            return
    pytest.fail(f"seed {SEED}: {hits} of {TRIES * wanted} blows hit a {role}, {wanted} are wanted; {pace}")


@pytest.mark.parametrize(("role", "count"), [("candidate", 3), ("referee", 2), ("zygote", 1)])
def test_whoever_is_killed_no_kernel_is_blamed_and_nothing_is_left(
    own: DeviceWorker, place: Path, pace: Pace, role: str, count: int
) -> None:
    disturbed_often(own, place, pace, role, count, role)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # a fork server that was killed takes seconds to start, many seconds on a slow host
@pytest.mark.parametrize(("role", "count"), [("candidate", 80), ("referee", 60), ("zygote", 12)])
def test_whoever_is_killed_at_many_more_moments(
    own: DeviceWorker, place: Path, pace: Pace, role: str, count: int
) -> None:
    disturbed_often(own, place, pace, role, count, f"many {role}")


def test_a_moment_after_the_end_hits_nobody_and_is_told_apart(own: DeviceWorker, place: Path, pace: Pace) -> None:
    """The control of the count: blows that come too late are not among the wanted ones."""
    assert not disturbed(own, place, pace, "zygote", 1000.0)


@pytest.mark.slow
@pytest.mark.parametrize(("role", "extra"), [("candidate", NEST), ("referee", NEST), ("zygote", NEST)])
def test_what_a_candidate_started_goes_with_it(
    own: DeviceWorker, place: Path, pace: Pace, role: str, extra: str
) -> None:
    parents = [solution(ADD, extra + KERNEL.format(body)) for body in ("a + b", "b + a")]
    disturbed_often(own, place, pace, role, 5, f"children {role}", *parents)


def test_who_kills_itself_every_time_answers_for_it_alone(own: DeviceWorker) -> None:
    suicide = solution(ADD, "import os\ndef run(a, b):\n    os.kill(os.getpid(), 9)\n")
    result = own.visit(asked(suicide, PLAIN))
    assert result.fault is None
    verdicts = [(item.status, item.rule) for item in result.evaluations]
    assert verdicts == [(Status.RUNTIME_ERROR, "signal")] * 2 + [(Status.PASSED, None)] * 2


LEAVES_A_NOTE = """
import glob, os
place = os.environ["TMPDIR"]
found = glob.glob(place + "/note") + glob.glob(place + "/../../../*/scratch/tmp/note")
open(place + "/note", "w").close()
def run(a, b):
    if "{}" == "first" and not found:
        os.kill(os.getpid(), 9)
    return a + b + len(found)
"""


def test_what_one_process_wrote_no_other_finds(own: DeviceWorker) -> None:
    """Else the outputs of the first try would be the answers of the second, or of another entry of the same author."""
    alone, after = (solution(ADD, LEAVES_A_NOTE.format(word)) for word in ("first", "second"))
    verdicts = [(item.status, item.rule) for item in own.visit(asked(alone, after)).evaluations]
    assert verdicts == [(Status.RUNTIME_ERROR, "signal")] * 2 + [(Status.PASSED, None)] * 2


def spoiled_run(own: DeviceWorker, store: Path, delay_s: float) -> bool:
    """A run whose second visit is struck keeps the first and repeats the second. Was that visit spoiled?"""
    own.warm()
    runner = Struck(own, {2: Blow(own, "referee", delay_s)})
    house = house_of(runner, store)
    first = settle(house, asked(PLAIN))
    settled = settle(house, asked(PLAIN, OTHER))
    told = f"seed {SEED}, {runner}"
    assert [item.status for item in settled.evaluations] == [Status.PASSED] * 4, told
    assert settled.evaluations[:2] == first.evaluations, told
    assert runner.spoiled <= (runner.blows[2].struck is not None), told
    assert runner.visits == 2 + runner.spoiled, told
    before = runner.visits
    assert settle(house, asked(PLAIN, OTHER)).found_count == 4, told
    assert runner.visits == before, told
    return runner.spoiled == 1


def test_a_run_keeps_what_it_finished_and_retries_what_was_spoiled(
    own: DeviceWorker, pace: Pace, tmp_path: Path
) -> None:
    half = pace.visit_s / 2  # the disturbed visit has one entrant of two, the other is known already
    assert any(
        spoiled_run(own, tmp_path / str(number), share * half) for number, share in enumerate(shares("run", TRIES))
    ), f"seed {SEED}: no blow spoiled a visit"


def outlived(own: DeviceWorker, place: Path, pace: Pace, store: Path, rounds: int, delay_s: float) -> None:
    """A killed run, what it left, and the next one, which finds everything that was finished."""
    finished = killed_run(place, store, rounds, delay_s)
    told = f"seed {SEED}, worker {delay_s:.4f} s after round {rounds}; {finished} rounds finished"
    assert finished >= rounds, told
    # A fork server that still starts ends afterwards: when torch is imported.
    assert left_in(place, own, within_s=ZYGOTE_START_S) == [], told
    recovers(own, place, pace, told)
    house = house_of(own, store)
    for number in range(finished):
        settled = settle(house, asked().model_copy(update={"round": number}))
        assert settled.found_count == 4, told
        assert {item.status for item in settled.evaluations} == {Status.PASSED}, told


def test_a_killed_worker_leaves_nothing_and_loses_nothing(
    own: DeviceWorker, place: Path, pace: Pace, tmp_path: Path
) -> None:
    own.warm()
    (share,) = shares("worker", 1)
    outlived(own, place, pace, tmp_path, 1, share * pace.visit_s)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("rounds", [0, 1], ids=["while it starts", "in a visit"])
def test_a_worker_killed_at_many_more_moments(
    own: DeviceWorker, place: Path, pace: Pace, tmp_path: Path, rounds: int
) -> None:
    own.warm()
    longest_s = 2 * pace.visit_s if rounds else start_s(place, tmp_path / "undisturbed")
    for number, share in enumerate(shares(f"many workers {rounds}", 6)):
        outlived(own, place, pace, tmp_path / str(number), rounds, share * longest_s)

"""Killed at a random moment: no machine's fault becomes a verdict, nothing outlives it, nothing finished is lost.

Delays come from a seed that a failure prints; ``FIB_KILL_SEED`` repeats it.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from blows import Blow, left_in
from kernels import ADD, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from fib_core.adapters.directory_store import DirectoryStore
from schemas.environment import Environment
from schemas.evaluation import Status
from schemas.solution import Solution
from schemas.visit import VisitRequest, VisitResult
from tasks.settings import Settings
from tasks.visits import settle
from tasks.wiring import House

SEED = int(os.environ.get("FIB_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
READY_S = 2.0
ZYGOTE_START_S = 60.0  # whoever lost its fork server imports torch again
LONGEST_S = 0.35  # shorter than the visit that is disturbed
KERNEL = "import time\ndef run(a, b):\n    time.sleep(0.005)\n    return {}\n"
PLAIN, OTHER = solution(ADD, KERNEL.format("a + b")), solution(ADD, KERNEL.format("b + a"))
CHILD = """
import os, subprocess
name = os.environ["TMPDIR"] + "/followed"
open(name, "w").close()
subprocess.Popen(["tail", "-f", name])
"""  # in the candidate's group
# Child and grandchild lead sessions of their own: in nobody's group, and the grandchild nobody's direct child.
NESTED = '"sh", "-c", "setsid tail -f $0 & exec tail -f $0", name], start_new_session=True'
NEST = CHILD.replace('"tail", "-f", name]', NESTED)


def asked(*entrants: Solution, seed: str = "secret") -> VisitRequest:
    return request(ADD, list(entrants or (PLAIN, OTHER)), [workload(ADD, N=size) for size in (64, 128)], seed=seed)


def delays(name: str, count: int, longest_s: float = LONGEST_S) -> list[float]:
    chance = random.Random(f"{SEED}/{name}")
    return [chance.uniform(0, longest_s) for _ in range(count)]


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


def recovers(worker: DeviceWorker, place: Path, told: str, within_s: float = READY_S) -> None:
    """The next visit works, soon, and nothing is left of the one before."""
    started = time.monotonic()
    after = worker.visit(asked())
    wall_s = time.monotonic() - started
    assert [item.status for item in after.evaluations] == [Status.PASSED] * 4, (told, after.fault)
    assert wall_s < within_s, (told, wall_s)
    assert left_in(place, worker) == [], told
    assert list(place.glob("fib-visit-*")) == [], told


def disturbed(worker: DeviceWorker, place: Path, role: str, delay_s: float, *entrants: Solution) -> Blow:
    """One visit with one blow, then an undisturbed one."""
    worker.warm()
    blow = Blow(worker, role, delay_s)
    hurt = blow.during(lambda: worker.visit(asked(*entrants)))
    told = f"seed {SEED}, {role} after {delay_s:.4f} s, pid {blow.struck}: {hurt.fault}"
    statuses = [(item.status, item.rule, item.reason) for item in hurt.evaluations]
    if hurt.fault is None:
        assert statuses == [(Status.PASSED, None, "")] * 4, (told, statuses)
    else:
        assert role != "candidate", told
        assert statuses == [], told
        assert hurt.fault.cause == f"{role}_died", told
    recovers(worker, place, told, ZYGOTE_START_S if role == "zygote" else READY_S)
    return blow


@pytest.mark.parametrize(("role", "count"), [("candidate", 3), ("referee", 2), ("zygote", 1)])
def test_whoever_is_killed_no_kernel_is_blamed_and_nothing_is_left(
    own: DeviceWorker, place: Path, role: str, count: int
) -> None:
    blows = [disturbed(own, place, role, delay_s) for delay_s in delays(role, count)]
    assert any(blow.struck for blow in blows), f"seed {SEED}: no blow met anybody"


@pytest.mark.slow
@pytest.mark.parametrize(("role", "count"), [("candidate", 80), ("referee", 60), ("zygote", 12)])
def test_whoever_is_killed_at_many_more_moments(own: DeviceWorker, place: Path, role: str, count: int) -> None:
    blows = [disturbed(own, place, role, delay_s) for delay_s in delays(f"many {role}", count)]
    assert sum(blow.struck is not None for blow in blows) > count / 2, f"seed {SEED}"


@pytest.mark.slow
@pytest.mark.parametrize(("role", "extra"), [("candidate", NEST), ("referee", NEST), ("zygote", NEST)])
def test_what_a_candidate_started_goes_with_it(own: DeviceWorker, place: Path, role: str, extra: str) -> None:
    parents = [solution(ADD, extra + KERNEL.format(body)) for body in ("a + b", "b + a")]
    for delay_s in delays(f"children {role}", 5):
        disturbed(own, place, role, delay_s, *parents)


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


@dataclass
class Struck:
    """A runner whose n-th visit is disturbed."""

    worker: DeviceWorker
    blows: dict[int, Blow]
    visits: int = 0
    spoiled: int = 0
    """Visits that ended in a fault: a referee that is struck after its last answer spoils none."""

    def describe(self) -> Environment:
        return self.worker.describe()

    def visit(self, asked_for: VisitRequest) -> VisitResult:
        self.visits += 1
        blow = self.blows.get(self.visits)
        result = blow.during(lambda: self.worker.visit(asked_for)) if blow else self.worker.visit(asked_for)
        self.spoiled += result.fault is not None
        return result


def house_of(runner: object, store: Path) -> House:
    environment = runner.describe()  # type: ignore[attr-defined]
    return House(Settings(), DirectoryStore(store), None, runner, environment)  # type: ignore[arg-type]


def test_a_run_keeps_what_it_finished_and_retries_what_was_spoiled(own: DeviceWorker, tmp_path: Path) -> None:
    own.warm()
    runner = Struck(own, {2: Blow(own, "referee", delays("run", 1)[0])})
    house = house_of(runner, tmp_path)
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


RUN = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from test_random_kills import DeviceWorker, asked, house_of, settle
with DeviceWorker(cache_dir=Path(sys.argv[3])) as worker:
    house = house_of(worker, Path(sys.argv[4]))
    print("begun", flush=True)
    for number in range(1000):
        settle(house, asked().model_copy(update={"round": number}))
        print(number, flush=True)
"""


def killed_run(place: Path, store: Path, rounds: int, delay_s: float) -> int:
    """Rounds that a run of its own process finished: it was killed ``delay_s`` after it had said so many lines."""
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    command = [sys.executable, "-c", RUN, *folders, str(place / "build"), str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(1 + rounds)]
        time.sleep(delay_s)
        process.kill()
        return len(said) - 1 + len(process.stdout.readlines())


def outlived(own: DeviceWorker, place: Path, store: Path, rounds: int, delay_s: float) -> None:
    """A killed run, what it left, and the next one, which finds everything that was finished."""
    finished = killed_run(place, store, rounds, delay_s)
    told = f"seed {SEED}, worker {delay_s:.4f} s after round {rounds}; {finished} rounds finished"
    assert finished >= rounds, told
    assert left_in(place, own, within_s=20) == [], told  # a fork server that still starts ends afterwards
    recovers(own, place, told)
    house = house_of(own, store)
    for number in range(finished):
        settled = settle(house, asked().model_copy(update={"round": number}))
        assert settled.found_count == 4, told
        assert {item.status for item in settled.evaluations} == {Status.PASSED}, told


def test_a_killed_worker_leaves_nothing_and_loses_nothing(own: DeviceWorker, place: Path, tmp_path: Path) -> None:
    own.warm()
    outlived(own, place, tmp_path, 1, delays("worker", 1)[0])


@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "longest_s"), [(0, 8.0), (1, 1.0)], ids=["while it starts", "in a visit"])
def test_a_worker_killed_at_many_more_moments(
    own: DeviceWorker, place: Path, tmp_path: Path, rounds: int, longest_s: float
) -> None:
    own.warm()
    for number, delay_s in enumerate(delays(f"many workers {rounds}", 6, longest_s)):
        outlived(own, place, tmp_path / str(number), rounds, delay_s)

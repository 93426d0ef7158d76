"""Runs to disturb: a runner one of whose visits is struck, and a run of its own process that is killed as a whole."""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from blows import Blow
from kernels import ADD, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from fib_core.adapters.directory_store import DirectoryStore
from schemas.environment import Environment
from schemas.solution import Solution
from schemas.visit import VisitRequest, VisitResult
from tasks.settings import Settings
from tasks.wiring import House

KERNEL = "import time\ndef run(a, b):\n    time.sleep(0.005)\n    return {}\n"
PLAIN, OTHER = solution(ADD, KERNEL.format("a + b")), solution(ADD, KERNEL.format("b + a"))


def asked(*entrants: Solution, seed: str = "secret") -> VisitRequest:
    return request(ADD, list(entrants or (PLAIN, OTHER)), [workload(ADD, N=size) for size in (64, 128)], seed=seed)


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


RUN = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from killed_runs import DeviceWorker, asked, house_of
from tasks.visits import settle
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
        assert process.poll() is None, f"nobody is left to kill; said {said}"
        process.kill()
        return len(said) - 1 + len(process.stdout.readlines())


def start_s(place: Path, store: Path) -> float:
    """Seconds from the launch of such a run to its first finished round, on this host now."""
    started = time.monotonic()
    killed_run(place, store, 1, 0.0)
    return time.monotonic() - started

"""A visit is looked up first, retried on the machine's fault, and recorded at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from fib_core.jobs import job_for
from schemas.definition import Definition
from schemas.environment import Environment
from schemas.evaluation import Evaluation, Limits, Status
from schemas.solution import BuildSpec, Solution, SourceFile
from schemas.visit import Contestant, MachineFault, VisitRequest, VisitResult
from schemas.workload import RandomInput, Workload
from tasks.settings import Settings
from tasks.visits import ATTEMPTS, settle
from tasks.wiring import House
from tests.fakes.memory_store import MemoryStore

DEFINITION = Definition.model_validate(
    {
        "name": "double", "op_type": "elementwise", "axes": {"n": {"type": "var"}},
        "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "reference": "def run(x):\n    return x * 2\n",
    }
)  # fmt: skip
ENVIRONMENT = Environment(
    device_class="test/1t", device_id="cpu-0", device_name="fake", hostname_digest="0", threads=1,
    python="3.11", libraries={"torch": "0"},
)  # fmt: skip
LIMITS = Limits(visit_s=1, build_s=1, memory_bytes=1 << 30)


def _contestant(role: str = "candidate", body: str = "x * 2") -> Contestant:
    solution = Solution(
        name=role, definition="double", author="a",
        spec=BuildSpec(
            language="python", target_hardware=("cpu",), entry_point="m.py::run", destination_passing_style=False
        ),
        sources=(SourceFile(path="m.py", content=f"def run(x):\n    return {body}\n"),),
    )  # fmt: skip
    return Contestant(role=role, solution=solution, solution_digest=solution.digest_for(DEFINITION.digest))


def _workload(size: int) -> Workload:
    return Workload(
        definition_digest=DEFINITION.digest, axes={"n": size}, inputs={"x": RandomInput(type="random")}
    )


def _request(*sizes: int, contestants: tuple[Contestant, ...] = (_contestant(),), seed: str = "s") -> VisitRequest:
    return VisitRequest(
        definition=DEFINITION, workloads=tuple(_workload(size) for size in sizes), contestants=contestants,
        stage="screen", round=0, seed=seed, warmup_count=1, sample_count=3, input_sets=1, sampling_draws=0,
        limits=LIMITS,
    )  # fmt: skip


@dataclass
class FakeRunner:
    """Passes everything, except that the first ``faults`` visits are spoiled by the machine."""

    faults: int = 0
    cause: str = "worker_lost"
    seen: list[VisitRequest] = field(default_factory=list)

    def describe(self) -> Environment:
        return ENVIRONMENT

    def prepare(self, solutions: Sequence[Solution], build_s: float) -> None:
        """Nothing to compile."""

    def visit(self, request: VisitRequest) -> VisitResult:
        self.seen.append(request)
        if len(self.seen) <= self.faults:
            fault = MachineFault(cause=self.cause, detail="made up")
            return VisitResult(evaluations=(), fault=fault, device_id="cpu-0", wall_s=0)
        passed = tuple(
            Evaluation(
                job=job_for(request.definition, workload, entrant, request, ENVIRONMENT),
                status=Status.PASSED, samples_us=(1.0, 2.0, 3.0), convention="value_returning", cache_policy="none",
                input_sets=1, environment=ENVIRONMENT, limits=LIMITS, seed=request.seed, started_at="now",
            )
            for entrant in request.contestants
            for workload in request.workloads
        )  # fmt: skip
        return VisitResult(evaluations=passed, device_id="cpu-0", wall_s=0.1)


def _house(runner: Any) -> House:
    return House(Settings(), MemoryStore(), tracker=None, runner=runner, environment=ENVIRONMENT)  # type: ignore[arg-type]


def test_a_finished_evaluation_is_never_measured_again() -> None:
    runner = FakeRunner()
    house = _house(runner)
    first = settle(house, _request(1, 2))
    again = settle(house, _request(1, 2, seed="another"))
    assert len(runner.seen) == 1
    assert again.evaluations == first.evaluations
    assert again.found_count == 2


def test_only_what_is_missing_is_visited() -> None:
    runner = FakeRunner()
    house = _house(runner)
    settle(house, _request(1))
    settled = settle(house, _request(1, 2, 3))
    assert [workload.axes["n"] for workload in runner.seen[1].workloads] == [2, 3]
    assert [item.status for item in settled.evaluations] == [Status.PASSED] * 3


def test_a_round_cut_short_goes_on_with_the_same_secret_inputs() -> None:
    runner = FakeRunner()
    house = _house(runner)
    entrants = (_contestant("incumbent"), _contestant("candidate", "x + x"))
    settle(house, _request(1, contestants=entrants[:1], seed="first seed"))
    settle(house, _request(1, contestants=entrants, seed="fresh seed"))
    assert runner.seen[1].contestants == entrants[1:]
    assert runner.seen[1].seed == "first seed"


def test_the_machines_fault_is_retried_and_leaves_no_trace() -> None:
    runner = FakeRunner(faults=ATTEMPTS - 1)
    settled = settle(_house(runner), _request(1))
    assert len(runner.seen) == ATTEMPTS
    assert settled.evaluations[0].status is Status.PASSED


def test_what_stays_spoiled_is_invalid_and_run_again_next_time() -> None:
    runner = FakeRunner(faults=ATTEMPTS)
    house = _house(runner)
    spoiled = settle(house, _request(1))
    assert spoiled.evaluations[0].status is Status.INVALID
    assert spoiled.evaluations[0].rule == "worker_lost"
    healed = settle(house, _request(1))
    assert healed.evaluations[0].status is Status.PASSED
    assert healed.found_count == 0


@pytest.mark.parametrize(
    ("probe", "status"),
    [(lambda: True, Status.RUNTIME_ERROR), (lambda: False, Status.INVALID), (None, Status.INVALID)],
    ids=["incumbent fine between", "incumbent fails too", "nothing to compare with"],
)
def test_three_lost_workers_are_the_candidates_fault_only_if_the_incumbent_held(
    probe: Callable[[], bool] | None, status: Status
) -> None:
    settled = settle(_house(FakeRunner(faults=ATTEMPTS)), _request(1), probe)
    assert settled.evaluations[0].status is status


def test_a_spoiled_screen_visit_of_several_is_repeated_one_by_one() -> None:
    runner = FakeRunner(faults=1)
    entrants = (_contestant(), _contestant(body="x + x"))
    settled = settle(_house(runner), _request(1, 2, contestants=entrants))
    assert [len(request.contestants) for request in runner.seen] == [2, 1, 1]
    assert [item.status for item in settled.evaluations] == [Status.PASSED] * 4


def test_one_bad_workload_costs_the_others_nothing() -> None:
    class Picky(FakeRunner):
        def visit(self, request: VisitRequest) -> VisitResult:
            self.faults = len(self.seen) + 1 if any(item.axes["n"] == 2 for item in request.workloads) else 0
            return super().visit(request)

    settled = settle(_house(Picky(cause="bad_input")), _request(1, 2, 3))
    assert [item.status for item in settled.evaluations] == [Status.PASSED, Status.INVALID, Status.PASSED]


def test_bad_input_is_not_retried_and_blames_nobody() -> None:
    runner = FakeRunner(faults=ATTEMPTS, cause="bad_input")
    settled = settle(_house(runner), _request(1), lambda: True)
    assert len(runner.seen) == 1
    assert settled.evaluations[0].status is Status.INVALID

"""A house over the made-up world of tests/core: settle, rounds and campaigns for real, times from a seeded table."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from fib_core import screen as screen_room
from fib_core.decision.profiles import RULES
from fib_core.jobs import job_for
from schemas.environment import Environment
from schemas.solution import Solution
from schemas.visit import VisitRequest, VisitResult
from tasks.budget import Budget, OutOfTime
from tasks.screen import Screened
from tasks.settings import Settings
from tasks.wiring import House
from tests.core.road import frozen
from tests.core.world import ENVIRONMENT, SETTINGS, World, gemm, solution
from tests.fakes.memory_store import MemoryStore

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)


@dataclass
class WorldRunner:
    """A KernelRunner over a World; remembers every visit."""

    world: World
    seen: list[VisitRequest] = field(default_factory=list)

    def describe(self) -> Environment:
        return ENVIRONMENT

    def prepare(self, solutions: Sequence[Solution], build_s: float) -> None:
        """Nothing to compile."""

    def visit(self, request: VisitRequest) -> VisitResult:
        self.seen.append(request)
        asked = [(entrant, workload) for entrant in request.contestants for workload in request.workloads]
        found = [
            item.model_copy(update={"job": job_for(request.definition, workload, entrant, request, ENVIRONMENT)})
            for item, (entrant, workload) in zip(self.world.visit(request), asked, strict=True)
        ]
        return VisitResult(evaluations=tuple(found), device_id=ENVIRONMENT.device_id, wall_s=0.1)


@dataclass
class Visits(Budget):
    """Grants so many visits, then no more."""

    granted: int = 10**9

    def take(self) -> None:
        if self.counts["visits"] >= self.granted:
            raise OutOfTime(self.place)
        self.counts["visits"] += 1


def house_of(world: World, store: MemoryStore | None = None, granted: int = 10**9, **settings: object) -> House:
    """A fresh run on ``store``: what an earlier run measured and decided is all that it knows."""
    runner = WorldRunner(world)
    chosen = Settings.model_validate(settings)
    return House(chosen, store or MemoryStore(), None, runner, ENVIRONMENT, Visits(granted=granted))  # type: ignore[arg-type]


def screened_of(world: World, house: House, names: Sequence[str] = ("fast",)) -> Screened:
    """The definition after a screen that nobody stores; everybody passed."""
    definition = gemm()
    snapshot, old = frozen(definition, SIZES)
    entered = [old, *(solution(name, definition) for name in names)]
    entrants = screen_room.contestants(definition, entered, snapshot.incumbents)
    evaluations = world.visits(screen_room.plan(snapshot, definition, entrants, SETTINGS, "seed").requests)
    contest = screen_room.finalists(snapshot, definition, entrants, evaluations, RULES[house.settings.profile])
    return Screened(contest, tuple(evaluations), tuple(entrants), (), 0)


def visits_of(house: House) -> list[VisitRequest]:
    """What this run brought to the device."""
    runner = house.runner
    assert isinstance(runner, WorldRunner)
    return runner.seen

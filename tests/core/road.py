"""The road from workloads to decisions over a made-up World, as a flow would walk it. Nothing here is under test."""

from collections.abc import Sequence
from dataclasses import dataclass

from fib_core import confirm, screen, split
from fib_core.decision.contest import Contest
from fib_core.decision.profiles import Rules
from fib_core.index.evidence import Measured
from schemas.decision import Decision
from schemas.definition import Definition
from schemas.evaluation import Evaluation
from schemas.snapshot import Snapshot
from schemas.solution import Solution
from schemas.visit import VisitRequest
from schemas.workload import Workload
from tests.core.world import DEVICE, QUICK, SETTINGS, World, dense, gemm, solution

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class Walked:
    """Everything that one definition's run produced."""

    snapshot: Snapshot
    solutions: dict[str, Solution]
    screened: list[Evaluation]
    contest: Contest
    rounds: dict[str, Evaluation]
    decisions: list[Decision]

    @property
    def measured(self) -> dict[str, Measured]:
        """How each decision was measured, as a task reads it from the ledger."""
        return {
            item.digest: Measured.of(self.rounds[name] for name in item.evaluations)
            for item in self.decisions
            if item.evaluations
        }


def frozen(definition: Definition, sizes: Sequence[int] = SIZES, key: str = "k") -> tuple[Snapshot, Solution]:
    """A snapshot whose one incumbent is called ``old``."""
    old = solution("old", definition, author="baseline")
    workloads: list[Workload] = [dense(definition, size, count=100 - place) for place, size in enumerate(sizes)]
    snapshot = split.split(
        workloads, {definition.name: definition}, {definition.digest: (old.digest_for(definition.digest),)}, key,
        "call_counts", split.stress_workloads(definition),
    )  # fmt: skip
    return snapshot, old


def round_request(contest: Contest, number: int, seed: str) -> VisitRequest:
    """A round in one visit, with finalists outside their declared support too: what happens there must not count."""
    parts = confirm.round_requests(contest, number, SETTINGS, seed)
    everybody = {(item.role, item.solution_digest): item for part in parts for item in part.contestants}
    first = parts[0]
    rest = [item.workload for item in contest.timed if item.workload not in first.workloads]
    return first.model_copy(
        update={"contestants": tuple(everybody.values()), "workloads": (*first.workloads, *rest)}
    )


def walk(
    world: World,
    candidates: Sequence[Solution] = (),
    rules: Rules = QUICK,
    sizes: Sequence[int] = SIZES,
    definition: Definition | None = None,
    rounds: int | None = None,
) -> Walked:
    """Screen, confirm, decide."""
    definition = definition or gemm()
    snapshot, old = frozen(definition, sizes)
    entrants = screen.contestants(definition, [old, *candidates], snapshot.incumbents)
    planned = screen.plan(snapshot, definition, entrants, SETTINGS, "seed")
    screened = world.visits(planned.requests)
    contest = screen.finalists(snapshot, definition, entrants, screened, rules)
    evaluations: dict[str, Evaluation] = {}
    if contest.blocked is None:
        for number in range(1, (rules.rounds if rounds is None else rounds) + 1):
            request = round_request(contest, number, f"seed-{number}")
            evaluations |= {item.digest: item for item in world.visit(request)}
    decisions = confirm.decide(contest, evaluations, rules, DEVICE)
    solutions = {item.solution_digest: item.solution for item in entrants}
    return Walked(snapshot, solutions, screened, contest, evaluations, decisions)

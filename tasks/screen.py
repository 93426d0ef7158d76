"""Stage 4 as the orchestrator treats it: every contestant of one definition visits the device once.

Declared incumbents go first, uncapped. The fastest of them that passed bounds the candidates' time and errors.
"""

import math
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import screen as room
from fib_core.contest import Contest, VisitSettings, placed_of
from fib_core.profiles import RULES
from schemas.definition import Definition
from schemas.evaluation import Evaluation, Status
from schemas.snapshot import Snapshot
from schemas.solution import Solution
from schemas.visit import Contestant, VisitRequest
from tasks.artifacts import show_table, slug
from tasks.profile import FIRST_VISIT_S, by_draws, candidate_limit_s, drawn_workloads, visit_settings
from tasks.tables import evaluation_rows
from tasks.visits import settle
from tasks.wiring import House


@dataclass(frozen=True)
class Screened:
    """What the screen saw of one definition, and what is worth confirming."""

    contest: Contest
    evaluations: tuple[Evaluation, ...]
    entrants: tuple[Contestant, ...]
    not_applicable: tuple[tuple[str, str], ...]
    found_count: int


@task(task_run_name="screen {definition.name}", cache_policy=NO_CACHE)
def screen(
    house: House, snapshot: Snapshot, definition: Definition, solutions: Sequence[Solution], blob_root: str | None
) -> Screened:
    """Judge and first-time every solution of one definition; failures are Evaluations, never exceptions."""
    entrants = room.contestants(definition, solutions, snapshot.incumbents)
    workloads = [item.workload for item in placed_of(snapshot, definition)]
    settings = visit_settings(house.settings, "screen", definition, workloads, blob_root)
    session = _Session(house, snapshot, definition, settings)
    for entrant in entrants:
        session.visit(entrant, len(entrants))
    rules = RULES[house.settings.profile]
    contest = room.finalists(snapshot, definition, entrants, session.evaluations, rules)
    rows = evaluation_rows(session.evaluations, {item.solution_digest: item.solution.name for item in entrants})
    show_table(slug("screen", definition.name), rows, f"Every verdict of the screen of {definition.name}.")
    get_run_logger().info("%s", _outcome(contest))
    return Screened(
        contest, tuple(session.evaluations), tuple(entrants), tuple(session.not_applicable), session.found_count
    )


class _Session:
    """One definition's visits, in order; remembers what the incumbents showed."""

    def __init__(self, house: House, snapshot: Snapshot, definition: Definition, settings: VisitSettings) -> None:
        self.house, self.snapshot, self.definition, self.settings = house, snapshot, definition, settings
        self.evaluations: list[Evaluation] = []
        self.not_applicable: list[tuple[str, str]] = []
        self.found_count = 0
        self.visited = 0
        self.incumbent: Contestant | None = None
        self._incumbent_us = math.inf
        self.drawn = drawn_workloads(placed_of(snapshot, definition), house.settings.profile, "screen")

    def visit(self, entrant: Contestant, total: int) -> None:
        """Bring one contestant through its workloads and say how it went."""
        self.visited += 1
        plan = room.plan(
            self.snapshot, self.definition, [entrant], self._settings_for(entrant), secrets.token_hex(16),
            incumbent_errors=self._incumbent_errors(entrant),
        )  # fmt: skip
        self.not_applicable += plan.not_applicable
        profile = self.house.settings.profile
        own: list[Evaluation] = []
        for request in [part for whole in plan.requests for part in by_draws(whole, profile, self.drawn)]:
            settled = settle(self.house, request, self._probe(entrant, request))
            own += settled.evaluations
            self.found_count += settled.found_count
        self.evaluations += own
        self._consider(entrant, own)
        short = entrant.solution.name.removeprefix(f"{self.definition.name}__")
        get_run_logger().info("%d/%d %s: %s", self.visited, total, short, _verdicts(own) or "not applicable")

    def _settings_for(self, entrant: Contestant) -> VisitSettings:
        own = [item for item in self.evaluations if self._is_incumbents(item)]
        first = entrant.role == "incumbent" or self.incumbent is None
        limit = FIRST_VISIT_S if first and self._trusted(entrant) else candidate_limit_s(self.house.settings, own)
        return replace(self.settings, limits=self.settings.limits.model_copy(update={"visit_s": limit}))

    def _trusted(self, entrant: Contestant) -> bool:
        """Declared incumbents and references may take long before anything is known; a stranger may not."""
        return entrant.role == "incumbent" or entrant.solution.author == "reference"

    def _is_incumbents(self, evaluation: Evaluation) -> bool:
        return self.incumbent is not None and evaluation.job.solution_digest == self.incumbent.solution_digest

    def _consider(self, entrant: Contestant, evaluations: Sequence[Evaluation]) -> None:
        """The fastest declared incumbent so far that passed everywhere."""
        if entrant.role != "incumbent" or not _all_passed(evaluations):
            return
        spent_us = sum(median(item.samples_us) for item in evaluations if item.samples_us)
        if spent_us < self._incumbent_us:
            self.incumbent, self._incumbent_us = entrant, spent_us

    def _incumbent_errors(self, entrant: Contestant) -> dict[str, dict[str, float]] | None:
        """Incumbents are honest by declaration: a more accurate one among them must not fail the others."""
        if self.incumbent is None or entrant.role == "incumbent":
            return None
        return room.incumbent_errors(self.evaluations, self.incumbent.solution_digest)

    def _probe(self, entrant: Contestant, request: VisitRequest) -> partial[bool] | None:
        if self.incumbent is None or entrant.role == "incumbent":
            return None
        return partial(incumbent_holds, self.house, request, self.incumbent)


def incumbent_holds(house: House, request: VisitRequest, incumbent: Contestant) -> bool:
    """Bring the incumbent to the device, unrecorded, to tell a bad machine from a bad candidate."""
    trial = request.model_copy(update={"contestants": (incumbent,), "workloads": request.workloads[:1]})
    result = house.runner.visit(trial)
    return result.fault is None and _all_passed(result.evaluations)


def _all_passed(evaluations: Sequence[Evaluation]) -> bool:
    return bool(evaluations) and all(item.status is Status.PASSED for item in evaluations)


def _verdicts(evaluations: Sequence[Evaluation]) -> str:
    counts = Counter(item.status.value + (f"({item.rule})" if item.rule else "") for item in evaluations)
    return ", ".join(f"{count} {label}" for label, count in counts.most_common())


def _outcome(contest: Contest) -> str:
    if contest.blocked:
        return contest.blocked
    names = ", ".join(item.solution.name for item in contest.finalists)
    return f"finalists {names} against {contest.incumbent.solution.name if contest.incumbent else 'nobody'}"

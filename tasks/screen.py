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

from prefect import get_run_logger

from fib_core import screen as room
from fib_core.decision.contest import Contest, VisitSettings, placed_of
from fib_core.decision.profiles import RULES
from schemas.definition import Definition
from schemas.evaluation import Evaluation, Status
from schemas.snapshot import Snapshot
from schemas.solution import Solution
from schemas.visit import Contestant, VisitRequest
from tasks.artifacts import show_table, slug
from tasks.benchmark import REFERENCE_AUTHOR
from tasks.profile import FIRST_VISIT_S, by_draws, candidate_limit_s, drawn_workloads, visit_settings
from tasks.stoppable import stoppable
from tasks.tables import evaluation_rows
from tasks.visits import settle
from tasks.wiring import House

CONTESTANTS_PER_VISIT = 6
"""A killed run loses at most one visit: few enough to lose little, enough to share the reference's work."""


@dataclass(frozen=True)
class Screened:
    """What the screen saw of one definition, and what is worth confirming."""

    contest: Contest
    evaluations: tuple[Evaluation, ...]
    entrants: tuple[Contestant, ...]
    not_applicable: tuple[tuple[str, str], ...]
    found_count: int


@stoppable(task_run_name="screen {definition.name}")
def screen(
    house: House, snapshot: Snapshot, definition: Definition, solutions: Sequence[Solution], blob_root: str | None
) -> Screened:
    """Judge and first-time every solution of one definition; failures are Evaluations, never exceptions."""
    house.budget.place = f"the screen of {definition.name}"
    entrants = room.contestants(definition, solutions, snapshot.incumbents)
    workloads = [item.workload for item in placed_of(snapshot, definition)]
    settings = visit_settings(house.settings, "screen", definition, workloads, blob_root)
    session = _Session(house, snapshot, definition, settings)
    session.visit([item for item in entrants if item.role == "incumbent"])
    session.visit([item for item in entrants if item.role != "incumbent"])
    rules = RULES[house.settings.profile]
    contest = room.finalists(snapshot, definition, entrants, session.evaluations, rules)
    rows = evaluation_rows(session.evaluations, {item.solution_digest: item.solution.name for item in entrants})
    show_table(slug("screen", definition.name), rows, f"Every verdict of the screen of {definition.name}.")
    get_run_logger().info("%s", _outcome(contest))
    house.budget.counts["screened"] += 1
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
        self.incumbent: Contestant | None = None
        self._incumbent_us = math.inf
        self.drawn = drawn_workloads(placed_of(snapshot, definition), house.settings.profile, "screen")

    def visit(self, entrants: Sequence[Contestant]) -> None:
        """Bring contestants through their workloads, a few a visit, and say how each of them went."""
        if not entrants:
            return
        plan = room.plan(
            self.snapshot, self.definition, entrants, self._settings_for(entrants), secrets.token_hex(16),
            incumbent_errors=self._incumbent_errors(entrants),
        )  # fmt: skip
        self.not_applicable += plan.not_applicable
        seen: dict[str, list[Evaluation]] = {item.solution_digest: [] for item in entrants}
        profile = self.house.settings.profile
        for request in [part for whole in together(plan.requests) for part in by_draws(whole, profile, self.drawn)]:
            settled = settle(self.house, request, self._probe(entrants, request))
            self.found_count += settled.found_count
            for evaluation in settled.evaluations:
                seen[evaluation.job.solution_digest].append(evaluation)
        for entrant in entrants:
            self._finish(entrant, seen[entrant.solution_digest])

    def _finish(self, entrant: Contestant, evaluations: Sequence[Evaluation]) -> None:
        self.evaluations += evaluations
        self._consider(entrant, evaluations)
        short = entrant.solution.name.removeprefix(f"{self.definition.name}__")
        get_run_logger().info("%s: %s", short, _verdicts(evaluations) or "not applicable")

    def _consider(self, entrant: Contestant, evaluations: Sequence[Evaluation]) -> None:
        """The fastest declared incumbent so far that passed everywhere."""
        if entrant.role != "incumbent" or not _all_passed(evaluations):
            return
        spent_us = sum(median(item.samples_us) for item in evaluations if item.samples_us)
        if spent_us < self._incumbent_us:
            self.incumbent, self._incumbent_us = entrant, spent_us

    def _incumbent_errors(self, entrants: Sequence[Contestant]) -> dict[str, dict[str, float]] | None:
        """Incumbents are honest by declaration: a more accurate one among them must not fail the others."""
        if self.incumbent is None or entrants[0].role == "incumbent":
            return None
        return room.incumbent_errors(self.evaluations, self.incumbent.solution_digest)

    def _settings_for(self, entrants: Sequence[Contestant]) -> VisitSettings:
        own = [item for item in self.evaluations if self._is_incumbents(item)]
        # Declared incumbents and references may take long before anything is known; a stranger may not.
        trusted = all(item.role == "incumbent" or item.solution.author == REFERENCE_AUTHOR for item in entrants)
        limit = FIRST_VISIT_S if trusted else candidate_limit_s(self.house.settings, own)
        return replace(self.settings, limits=self.settings.limits.model_copy(update={"visit_s": limit}))

    def _is_incumbents(self, evaluation: Evaluation) -> bool:
        return self.incumbent is not None and evaluation.job.solution_digest == self.incumbent.solution_digest

    def _probe(self, entrants: Sequence[Contestant], request: VisitRequest) -> partial[bool] | None:
        if self.incumbent is None or entrants[0].role == "incumbent":
            return None
        return partial(incumbent_holds, self.house, request, self.incumbent)


def together(requests: Sequence[VisitRequest]) -> list[VisitRequest]:
    """Contestants with the same workloads share visits: inputs and references are made once for all of them."""
    groups: dict[tuple[str, ...], list[VisitRequest]] = {}
    for request in requests:
        groups.setdefault(tuple(item.digest for item in request.workloads), []).append(request)
    return [
        same[0].model_copy(update={"contestants": tuple(one for each in chunk for one in each.contestants)})
        for same in groups.values()
        for chunk in batched(same, CONTESTANTS_PER_VISIT)
    ]


def batched(items: Sequence[VisitRequest], size: int) -> list[Sequence[VisitRequest]]:
    """Consecutive runs of at most ``size`` (itertools has it from Python 3.12 on)."""
    return [items[start : start + size] for start in range(0, len(items), size)]


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

"""Paired rounds as numbers: log(incumbent / contestant) per round, for a key or for one workload.

In: a Contest and its confirm-stage Evaluations. Out: log-ratios in round order. A round counts for a contestant only if
both it and the incumbent passed and were timed on every workload asked for; nothing is imputed. Evaluations of another
campaign than the contest's are another experiment: they never enter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Literal, NamedTuple

from fib_core.decision.contest import Contest, applies
from schemas.base import Digest
from schemas.evaluation import Evaluation, Status
from schemas.snapshot import Placed


class Entry(NamedTuple):
    """Who was entered: the control shares the incumbent's digest, so the role is part of the name."""

    role: Literal["candidate", "incumbent", "control"]
    solution: Digest


_Parts = tuple[tuple[float, Digest], ...]


class _Cell(NamedTuple):
    entry: Entry
    round: int
    workload: Digest


@dataclass(frozen=True)
class Rounds:
    """All confirmed measurements of one campaign of one definition."""

    incumbent: Entry | None
    forms: tuple[Entry, ...]
    times_us: Mapping[_Cell, float]
    names: Mapping[_Cell, Digest]
    failures: Mapping[Entry, tuple[Evaluation, ...]]
    watched: tuple[Evaluation, ...] = ()
    """Timed evaluations of the incumbent and the control, from which the machine is judged."""

    @classmethod
    def of(cls, contest: Contest, evaluations: Mapping[Digest, Evaluation]) -> "Rounds":
        """Sort the confirm-stage evaluations of ``contest``; INVALID ones are no evidence for or against anybody."""
        times: dict[_Cell, float] = {}
        names: dict[_Cell, Digest] = {}
        failures: dict[Entry, tuple[Evaluation, ...]] = {}
        watched: list[Evaluation] = []
        incumbent = Entry("incumbent", contest.incumbent.solution_digest) if contest.incumbent else None
        outside = _outside(contest)
        for digest, item in evaluations.items():
            if not _belongs(item, contest):
                continue
            cell = _Cell(Entry(item.job.role, item.job.solution_digest), item.job.round, item.job.workload_digest)
            if item.status is Status.PASSED and item.samples_us:
                times[cell], names[cell] = median(item.samples_us), digest
                if incumbent and cell.entry.role != "candidate" and cell.entry.solution == incumbent.solution:
                    watched.append(item)
            elif item.status is not Status.INVALID and (cell.entry.solution, cell.workload) not in outside:
                failures[cell.entry] = (*failures.get(cell.entry, ()), item)
        forms = tuple(Entry("incumbent", form.solution_digest) for form in contest.forms)
        return cls(incumbent, forms, times, names, failures, tuple(watched))

    def log_ratios(self, entry: Entry, items: Sequence[Placed]) -> tuple[float, ...]:
        """log(sum w t_baseline / sum w t_entry) of every complete round, in round order."""
        baseline = self.baseline(entry, items)
        if baseline is None or not items:
            return ()
        parts = _parts(items)
        old, new = self._totals(baseline, parts), self._totals(entry, parts)
        return tuple(math.log(old[number] / new[number]) for number in sorted(old.keys() & new.keys()))

    def baseline(self, entry: Entry, items: Sequence[Placed]) -> Entry | None:
        """Whom a candidate must beat on ``items``: the declared form that was fastest there. The control: itself.

        Chosen in the rounds themselves, which can only be to the candidate's disadvantage.
        """
        if self.incumbent is None or entry.role == "control" or not self.forms:
            return self.incumbent
        return min((self.incumbent, *self.forms), key=lambda form: self._typical(form, _parts(items)))

    def typical_us(self, entry: Entry, items: Sequence[Placed]) -> float | None:
        """Microseconds of one call: median over rounds of the weighted mean over ``items``; None without a round."""
        typical = self._typical(entry, _parts(items))
        return typical / math.fsum(weight for weight, _ in _parts(items)) if math.isfinite(typical) else None

    def _typical(self, entry: Entry, parts: _Parts) -> float:
        totals = self._totals(entry, parts)
        return median(totals.values()) if totals else math.inf

    def evidence(self, entries: Sequence[Entry], items: Sequence[Placed]) -> tuple[Digest, ...]:
        """Digests of the evaluations of ``entries`` on ``items``, sorted."""
        digests = {item.workload.digest for item in items}
        return tuple(sorted(n for cell, n in self.names.items() if cell.entry in entries and cell.workload in digests))

    @cached_property
    def _runs(self) -> dict[Entry, dict[int, dict[Digest, float]]]:
        """Entry -> round -> workload -> microseconds."""
        runs: dict[Entry, dict[int, dict[Digest, float]]] = {}
        for cell, time_us in self.times_us.items():
            runs.setdefault(cell.entry, {}).setdefault(cell.round, {})[cell.workload] = time_us
        return runs

    @cached_property
    def _known(self) -> dict[tuple[Entry, _Parts], dict[int, float]]:
        return {}

    def _totals(self, entry: Entry, parts: _Parts) -> dict[int, float]:
        """Round -> weighted time, of the rounds that are complete on ``parts``."""
        if (entry, parts) not in self._known:
            self._known[entry, parts] = {
                number: math.fsum(weight * times[workload] for weight, workload in parts)
                for number, times in self._runs.get(entry, {}).items()
                if all(workload in times for _, workload in parts)
            }
        return self._known[entry, parts]


def _parts(items: Sequence[Placed]) -> _Parts:
    # Stress workloads weigh nothing in traffic; alone in a gate they still have a time.
    return tuple((item.weight or 1.0, item.workload.digest) for item in items)


def _belongs(item: Evaluation, contest: Contest) -> bool:
    job = item.job
    mine = job.stage == "confirm" and job.definition_digest == contest.definition.digest
    return mine and job.campaign == contest.campaign


def _outside(contest: Contest) -> set[tuple[Digest, Digest]]:
    """(finalist, timed workload) pairs beyond the finalist's declared support."""
    return {
        (finalist.solution_digest, item.workload.digest)
        for finalist in contest.finalists
        for item in contest.timed
        if not applies(finalist, contest.definition, item.workload)
    }

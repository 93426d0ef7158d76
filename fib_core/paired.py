"""Paired rounds as numbers: log(incumbent / contestant) per round, for a key or for one workload.

In: a Contest and its confirm-stage Evaluations. Out: log-ratios in round order. A round counts for a contestant only if
both it and the incumbent passed and were timed on every workload asked for; nothing is imputed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, NamedTuple

from fib_core.contest import Contest, applies
from schemas.base import Digest
from schemas.evaluation import Evaluation, Status
from schemas.snapshot import Placed


class Entry(NamedTuple):
    """Who was entered: the control shares the incumbent's digest, so the role is part of the name."""

    role: Literal["candidate", "incumbent", "control"]
    solution: Digest


class _Cell(NamedTuple):
    entry: Entry
    round: int
    workload: Digest


@dataclass(frozen=True)
class Rounds:
    """All confirmed measurements of one definition."""

    incumbent: Entry | None
    forms: tuple[Entry, ...]
    times_us: Mapping[_Cell, float]
    names: Mapping[_Cell, Digest]
    failures: Mapping[Entry, tuple[Evaluation, ...]]

    @classmethod
    def of(cls, contest: Contest, evaluations: Mapping[Digest, Evaluation]) -> "Rounds":
        """Sort the confirm-stage evaluations of ``contest``; INVALID ones are no evidence for or against anybody."""
        times: dict[_Cell, float] = {}
        names: dict[_Cell, Digest] = {}
        failures: dict[Entry, tuple[Evaluation, ...]] = {}
        own, outside = contest.definition.digest, _outside(contest)
        for digest, item in evaluations.items():
            if item.job.stage != "confirm" or item.job.definition_digest != own:
                continue
            cell = _Cell(Entry(item.job.role, item.job.solution_digest), item.job.round, item.job.workload_digest)
            if item.status is Status.PASSED and item.samples_us:
                times[cell], names[cell] = median(item.samples_us), digest
            elif item.status is not Status.INVALID and (cell.entry.solution, cell.workload) not in outside:
                failures[cell.entry] = (*failures.get(cell.entry, ()), item)
        incumbent = Entry("incumbent", contest.incumbent.solution_digest) if contest.incumbent else None
        forms = tuple(Entry("incumbent", form.solution_digest) for form in contest.forms)
        return cls(incumbent=incumbent, forms=forms, times_us=times, names=names, failures=failures)

    def log_ratios(self, entry: Entry, items: Sequence[Placed]) -> tuple[float, ...]:
        """log(sum w t_baseline / sum w t_entry) of every complete round, in round order."""
        baseline = self.baseline(entry, items)
        if baseline is None or not items:
            return ()
        parts = [(item.weight, item.workload.digest) for item in items]
        both = ((self._total(baseline, r, parts), self._total(entry, r, parts)) for r in self._numbers)
        return tuple(math.log(old / new) for old, new in both if old is not None and new is not None)

    def baseline(self, entry: Entry, items: Sequence[Placed]) -> Entry | None:
        """Whom a candidate must beat on ``items``: the declared form that was fastest there. The control: itself.

        Chosen in the rounds themselves, which can only be to the candidate's disadvantage.
        """
        if self.incumbent is None or entry.role == "control":
            return self.incumbent
        parts = [(item.weight, item.workload.digest) for item in items]
        return min((self.incumbent, *self.forms), key=lambda form: self._typical(form, parts))

    def _typical(self, entry: Entry, parts: Sequence[tuple[float, Digest]]) -> float:
        totals = [total for number in self._numbers if (total := self._total(entry, number, parts)) is not None]
        return median(totals) if totals else math.inf

    def evidence(self, entries: Sequence[Entry], items: Sequence[Placed]) -> tuple[Digest, ...]:
        """Digests of the evaluations of ``entries`` on ``items``, sorted."""
        digests = {item.workload.digest for item in items}
        return tuple(sorted(n for cell, n in self.names.items() if cell.entry in entries and cell.workload in digests))

    @property
    def _numbers(self) -> list[int]:
        return sorted({cell.round for cell in self.times_us})

    def _total(self, entry: Entry, number: int, parts: Sequence[tuple[float, Digest]]) -> float | None:
        # Stress workloads weigh nothing in traffic; alone in a gate they still have a time.
        times = [(weight or 1.0, self.times_us.get(_Cell(entry, number, workload))) for weight, workload in parts]
        if any(time is None for _, time in times):
            return None
        return math.fsum(weight * time for weight, time in times if time is not None)


def _outside(contest: Contest) -> set[tuple[Digest, Digest]]:
    """(finalist, timed workload) pairs beyond the finalist's declared support."""
    return {
        (finalist.solution_digest, item.workload.digest)
        for finalist in contest.finalists
        for item in contest.timed
        if not applies(finalist, contest.definition, item.workload)
    }

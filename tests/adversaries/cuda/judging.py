"""Visits: subjects in, for each how it ended. On a CUDA device several of one definition share a visit.

A visit that was spoiled is repeated with each of its subjects alone: whoever spoils it again did it.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from fib_core.adapters.device_worker import DeviceWorker
from schemas.evaluation import Evaluation, Limits, Status
from schemas.solution import Solution
from schemas.visit import Contestant, VisitRequest
from tests.adversaries import arena
from tests.adversaries.arena import INPUT_SETS, SAMPLES, WARMUPS, Entry
from tests.adversaries.cuda.subjects import Subject, bystander_of
from tests.adversaries.definitions import DEFINITIONS, DRAWS, WORKLOADS
from tests.adversaries.expectations import Row

LIMITS = Limits(visit_s=10.0, build_s=120.0, memory_bytes=2**34)
BATCH = 8
Outcome = Literal["caught", "neutralised", "missed", "refused", "passed", "rejected"]


@dataclass(frozen=True)
class Judged:
    """One subject's evaluations, one per workload and copy; or why there are none."""

    subject: Subject
    evaluations: tuple[Evaluation, ...]
    bystander: tuple[Evaluation, ...] = ()
    fault: str | None = None

    @property
    def outcome(self) -> Outcome:
        """What became of it. ``refused``: no verdict, which is nobody's pass."""
        row = self.subject.row
        if self.fault is not None:
            return "refused"
        failed = any(one.status is not Status.PASSED for one in self.evaluations)
        if row is None:
            return "rejected" if failed else "passed"
        return "caught" if failed else outcome_of_pass(row, [list(one.samples_us) for one in self.evaluations])

    @property
    def problems(self) -> list[str]:
        """What contradicts the row, in words."""
        seen = [(one.status.value, one.rule) for one in self.evaluations]
        words = f"{self.subject.file}: {self.outcome}: {seen} {[one.reason for one in self.evaluations][:1]}"
        row = self.subject.row
        if self.outcome in ("missed", "rejected") or (self.fault and not (row and row.spoils_visit)):
            return [words if self.fault is None else f"{self.subject.file}: {self.fault}"]
        return [f"{words}: its bystander too" for one in self.bystander if one.status is not Status.PASSED]


def outcome_of_pass(row: Row, samples_us: list[list[float]]) -> Outcome:
    """A cheat that passed had no effect if, and only if, its times are true."""
    extreme = max if row.slowest_only else min
    told = [row.true_us is not None and extreme(times) >= 0.98 * row.true_us for times in samples_us]
    return "neutralised" if (all(told) if row.everywhere else any(told)) else "missed"


def judge(
    worker: DeviceWorker, subjects: list[Subject], seed: str, report: Callable[[Judged], None] | None = None
) -> list[Judged]:
    """All subjects, on a CUDA device in visits of a few; ``report`` hears each outcome when it is known."""
    done = []
    for group in _groups(subjects):
        for judged in _visit(worker, group, seed):
            done.append(judged)
            if report is not None:
                report(judged)
    return done


def _groups(subjects: list[Subject]) -> Iterator[list[Subject]]:
    together = [one for one in subjects if not _alone(one)]
    together.sort(key=lambda one: one.entry.definition)
    for _, same in itertools.groupby(together, key=lambda one: one.entry.definition):
        listed = list(same)
        yield from (listed[start : start + BATCH] for start in range(0, len(listed), BATCH))
    yield from ([one] for one in subjects if _alone(one))


def _alone(subject: Subject) -> bool:
    row = subject.row
    if subject.origin == "cpu":
        return True
    return row is not None and (row.copies > 1 or row.bystander is not None or row.spoils_visit)


def _visit(worker: DeviceWorker, group: list[Subject], seed: str) -> Iterator[Judged]:
    definition = group[0].entry.definition
    entries = [entry for one in group for entry in [one.entry] * (one.row.copies if one.row else 1)]
    extra = bystander_of(group[0])
    hardware = "cpu" if group[0].origin == "cpu" else "cuda"
    result = worker.visit(request(definition, entries + ([extra] if extra else []), seed, hardware))
    if result.fault is not None and len(group) > 1:
        for one in group:
            yield from _visit(worker, [one], seed)
        return
    if result.fault is not None:
        yield Judged(group[0], (), fault=f"{result.fault.cause}: {result.fault.detail[:300]}")
        return
    left = list(result.evaluations)
    for one in group:
        size = len(WORKLOADS[definition]) * (one.row.copies if one.row else 1)
        yield Judged(one, tuple(left[:size]), tuple(left[size:]) if extra else ())
        left = left[size:]


def request(definition: str, entries: list[Entry], seed: str, hardware: str) -> VisitRequest:
    """As the CPU corpus is judged; on a device with room for a CUDA context."""
    target = DEFINITIONS[definition]
    make = arena.solution if hardware == "cpu" else solution
    made = [make(entry, f"candidate-{number}") for number, entry in enumerate(entries)]
    contestants = tuple(
        Contestant(role="candidate", solution=one, solution_digest=one.digest_for(target.digest)) for one in made
    )
    return VisitRequest(
        definition=target, workloads=WORKLOADS[definition], contestants=contestants, stage="screen", round=0, seed=seed,
        warmup_count=WARMUPS, sample_count=SAMPLES, input_sets=INPUT_SETS, sampling_draws=DRAWS.get(definition, 0),
        limits=arena.LIMITS if hardware == "cpu" else LIMITS,
    )  # fmt: skip


def solution(entry: Entry, name: str) -> Solution:
    """An entry in the public schema, for a CUDA device."""
    file = "kernel.cu" if entry.language == "cuda" else "kernel.py"
    spec = {
        "language": entry.language, "target_hardware": ["cuda"], "entry_point": f"{file}::{entry.symbol}",
        "destination_passing_style": entry.destination_passing,
    }  # fmt: skip
    body = {"name": name, "definition": entry.definition, "author": "anybody", "spec": spec}
    return Solution.model_validate(body | {"sources": [{"path": file, "content": entry.source}]})

"""What the screen hands to the confirmation: one definition, its workloads, its incumbent and its finalists.

Plain values and small questions about them (which key, which time, which workload applies). Knows neither how they were
measured nor what is decided from them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from fib_core.workloads.axisclass import class_key
from fib_core.workloads.constraints import violated
from schemas.base import Digest
from schemas.definition import Definition
from schemas.evaluation import Evaluation, Limits, Mode
from schemas.snapshot import Placed, Snapshot
from schemas.visit import Contestant
from schemas.workload import Workload

Times = Mapping[tuple[Digest, Digest], float]


@dataclass(frozen=True)
class VisitSettings:
    """How visits are carried out; the same for all contestants of a definition."""

    warmup_count: int
    sample_count: int
    input_sets: int
    sampling_draws: int
    limits: Limits
    mode: Mode = "isolated"
    blob_root: str | None = None


@dataclass(frozen=True)
class Contest:
    """One definition after its screen. ``blocked`` says why no rounds are worth running; None = go on."""

    snapshot_digest: Digest
    definition: Definition
    placed: tuple[Placed, ...]
    timed: tuple[Placed, ...]
    incumbent: Contestant | None
    finalists: tuple[Contestant, ...]
    blocked: str | None
    notes: Mapping[Digest, str] = field(default_factory=dict)
    forms: tuple[Contestant, ...] = ()
    """Other declared incumbents, fastest at some key of the screen: whoever is promoted there must beat them too."""

    toothless: Mapping[Digest, tuple[str, ...]] = field(default_factory=dict)
    """Workload -> mutated outputs that its rules would let pass: it gates, but supports no promotion."""

    campaign: int = 0
    """Which repetition of the rounds this is; evaluations of another are no evidence here."""

    @property
    def train(self) -> tuple[Placed, ...]:
        """Train workloads, timed or not."""
        return tuple(item for item in self.placed if item.split == "train")

    @cached_property
    def keys(self) -> dict[str, tuple[Placed, ...]]:
        """Key string -> its train workloads, in key order of the first."""
        keys: dict[str, list[Placed]] = {}
        for item in self.train:
            keys.setdefault(class_key(item.workload.axes), []).append(item)
        return {key: tuple(items) for key, items in sorted(keys.items())}


def placed_of(snapshot: Snapshot, definition: Definition) -> tuple[Placed, ...]:
    """All workloads of one definition, in snapshot order."""
    digest = definition.digest
    return tuple(item for item in snapshot.workloads if item.workload.definition_digest == digest)


def toothless_workloads(evaluations: Iterable[Evaluation]) -> dict[Digest, tuple[str, ...]]:
    """Workload -> mutations that survived on it, of the workloads where any did."""
    return {item.job.workload_digest: item.survivors for item in evaluations if item.survivors}


def applies(contestant: Contestant, definition: Definition, workload: Workload) -> bool:
    """True unless the solution's declared support excludes this workload; an undecidable expression excludes it too."""
    supports = contestant.solution.spec.supports
    if not supports:
        return True
    sizes = definition.const_axes | workload.axes
    return violated(supports, sizes, undecidable=True) is None


def screen_times(evaluations: Iterable[Evaluation]) -> dict[tuple[Digest, Digest], float]:
    """(solution, workload) -> median microseconds, of passed and timed evaluations."""
    return {
        (item.job.solution_digest, item.job.workload_digest): median(item.samples_us)
        for item in evaluations
        if item.status == "PASSED" and item.samples_us
    }

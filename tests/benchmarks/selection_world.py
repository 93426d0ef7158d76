"""A made-up device for ``bench_selection``: it answers the real VisitRequests with synthetic times, and nothing else.

Noise of one call, multiplied: an autoregressive drift from process to process, one offset per process, a scatter per
call, and now and then an outlier. Evaluations are real records, copied from one that was validated: there are millions.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from fib_core import screen, split
from fib_core.decision.contest import VisitSettings
from schemas.base import Record
from schemas.definition import AxisVar, Definition, TensorSpec
from schemas.environment import Environment
from schemas.evaluation import Evaluation, Job, Limits, Status
from schemas.snapshot import Snapshot
from schemas.solution import BuildSpec, Solution, SourceFile
from schemas.visit import Contestant, VisitRequest
from schemas.workload import RandomInput, Workload

DEVICE = "x86-64-v4/1t"
LIMITS = Limits(visit_s=10, build_s=120, memory_bytes=1 << 31)
ENVIRONMENT = Environment(
    device_class=DEVICE, device_id="cpu:0", device_name="simulated", hostname_digest="sha256:" + "0" * 64, threads=1,
    python="3.11", libraries={},
)  # fmt: skip
BASE_US = 20.0
RAMP_ROUNDS = 10
POINTS = (9, 10, 12, 14, 16)  # one key, five families: axis class with length structure


@dataclass(frozen=True)
class Noise:
    """Standard deviations of logarithms; ``outlier`` is the mean of an exponential added to a call's logarithm."""

    drift: float = 0.01
    drift_kept: float = 0.95
    """Correlation of the drift of one process with that of the process before."""
    process: float = 0.008
    call: float = 0.01
    outlier_share: float = 0.03
    outlier: float = 0.3
    one_process: bool = False
    """Negative control: all rounds of a contestant inside one process, with one offset."""
    control_gain: float = 0.0
    """Negative control: the incumbent under its false name is this much faster than itself."""
    ramp: float = 0.0
    """Negative control: the device is slower by this much after ten rounds, evenly."""


@dataclass
class Device:
    """One campaign's device: it drifts on from visit to visit. ``gains``: solution name -> true gain (0.02 = 2 %)."""

    noise: Noise
    gains: dict[str, float]
    rng: np.random.Generator
    jobs: dict[tuple[object, ...], Job]
    """Shared by campaigns: equal questions have equal jobs."""
    drift: float = 0.0
    offsets: dict[tuple[str, str], float] = field(default_factory=dict)
    serial: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.drift = float(self.rng.normal(0, self.noise.drift))

    def visit(self, request: VisitRequest) -> dict[str, Evaluation]:
        """Made-up digest -> Evaluation, every contestant in a process of its own, in the order of the request."""
        found: dict[str, Evaluation] = {}
        for entrant, times in zip(request.contestants, self._times(request).tolist(), strict=True):
            for workload, samples in zip(request.workloads, times, strict=True):
                job = self._job(request, entrant, workload)
                made = _changed(_EVALUATION, job=job, samples_us=tuple(samples))
                found[f"sha256:{next(self.serial):064x}"] = made
        return found

    def _times(self, request: VisitRequest) -> "np.ndarray":
        """Microseconds, contestants x workloads x samples."""
        noise = self.noise
        shape = (len(request.contestants), len(request.workloads), request.sample_count)
        levels = np.array([self._level(entrant, request) for entrant in request.contestants])
        logs = levels[:, None, None] + self.rng.normal(0, noise.call, shape)
        outliers = self.rng.random(shape) < noise.outlier_share
        return BASE_US * np.exp(logs + outliers * self.rng.exponential(noise.outlier, shape))

    def _level(self, entrant: Contestant, request: VisitRequest) -> float:
        """Logarithm of one process's pace."""
        noise = self.noise
        self.drift *= noise.drift_kept
        self.drift += self.rng.normal(0, noise.drift * (1 - noise.drift_kept**2) ** 0.5)
        offset = self.rng.normal(0, noise.process)
        if noise.one_process and request.stage == "confirm":
            offset = self.offsets.setdefault((entrant.role, entrant.solution_digest), offset)
        gain = self.gains.get(entrant.solution.name, 0.0)
        gain += noise.control_gain if entrant.role == "control" else 0.0
        return self.drift + offset + noise.ramp * request.round / RAMP_ROUNDS - math.log1p(gain)

    def _job(self, request: VisitRequest, entrant: Contestant, workload: Workload) -> Job:
        key = (entrant.role, entrant.solution_digest, workload.digest, request.stage, request.round, request.campaign)
        if key not in self.jobs:
            self.jobs[key] = _changed(
                _JOB, definition_digest=request.definition.digest, workload_digest=workload.digest,
                solution_digest=entrant.solution_digest, stage=request.stage, round=request.round, role=entrant.role,
                campaign=request.campaign,
            )  # fmt: skip
        return self.jobs[key]


_JOB = Job(
    definition_digest="sha256:" + "0" * 64, workload_digest="sha256:" + "0" * 64,
    solution_digest="sha256:" + "0" * 64, policy_version=1, stage="screen", round=0, device_class=DEVICE,
    library_versions={}, mode="isolated", timer="monotonic", effort="simulated",
)  # fmt: skip
_EVALUATION = Evaluation(
    job=_JOB, status=Status.PASSED, samples_us=(1.0,), convention="destination_passing", cache_policy="simulated",
    input_sets=1, environment=ENVIRONMENT, limits=LIMITS, seed="seed", started_at="never",
)  # fmt: skip
AnyRecord = TypeVar("AnyRecord", bound=Record)


def _changed(template: AnyRecord, **changes: object) -> AnyRecord:
    """As ``model_copy``, many times faster."""
    made = template.__class__.__new__(template.__class__)
    object.__setattr__(made, "__dict__", template.__dict__ | changes)
    for name in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        object.__setattr__(made, name, getattr(template, name))
    return made


@dataclass(frozen=True)
class Stage:
    """What all campaigns of a row share: dataset, entrants, and the screen as one visit, a process per entrant."""

    definition: Definition
    snapshot: Snapshot
    entrants: list[Contestant]
    screening: VisitRequest


def settings(sample_count: int) -> VisitSettings:
    """Of a visit with so many timed calls."""
    return VisitSettings(warmup_count=1, sample_count=sample_count, input_sets=1, sampling_draws=0, limits=LIMITS)


def stage(candidate_count: int, screen_samples: int) -> Stage:
    """One incumbent, candidates ``c0``, ``c1``, ...; one key with four train workloads, and a holdout."""
    definition = Definition(
        name="gemm_n8_k4", op_type="gemm", axes={"M": AxisVar()},
        inputs={"A": TensorSpec(shape=("M",), dtype="float32")},
        outputs={"C": TensorSpec(shape=("M",), dtype="float32")}, reference="def run(A):\n    return A\n",
    )  # fmt: skip
    old = _solution("old", definition)
    solutions = [old, *(_solution(f"c{number}", definition) for number in range(candidate_count))]
    works = [_workload(definition, size, f"family {place}") for place, size in enumerate(POINTS)]
    incumbents = {definition.digest: (old.digest_for(definition.digest),)}
    for key in map(str, itertools.count()):
        snapshot = split.split(works, {definition.name: definition}, incumbents, key, "none")
        if sorted(item.split for item in snapshot.workloads) == ["holdout", *["train"] * (len(POINTS) - 1)]:
            break
    entrants = screen.contestants(definition, solutions, snapshot.incumbents)
    planned = screen.plan(snapshot, definition, entrants, settings(screen_samples), "seed")
    first = planned.requests[0]
    return Stage(definition, snapshot, entrants, first.model_copy(update={"contestants": tuple(entrants)}))


def _solution(name: str, definition: Definition) -> Solution:
    return Solution(
        name=name, definition=definition.name, author="lab",
        spec=BuildSpec(language="python", target_hardware=("cpu",), entry_point="main.py::run"),
        sources=(SourceFile(path="main.py", content=f"# {name}\n"),),
    )  # fmt: skip


def _workload(definition: Definition, size: int, structure: str) -> Workload:
    return Workload(
        definition_digest=definition.digest, axes={"M": size}, inputs={"A": RandomInput(type="random")},
        structure_class=structure,
    )  # fmt: skip

"""The process contract: what a worker is asked (VisitRequest) and what it answers (VisitResult).

A visit brings one or more contestants, each in a fresh candidate process, through all workloads of one definition
on one device. Everything in here is plain data, so it crosses Dask, a socket or a file unchanged.
"""

from typing import Literal

from pydantic import Field

from schemas.base import Digest, Natural, NonEmpty, Record, absent
from schemas.definition import Definition
from schemas.evaluation import Evaluation, Limits, Mode, Stage
from schemas.solution import Solution
from schemas.workload import Workload

Role = Literal["candidate", "incumbent", "control"]


class Contestant(Record):
    """One solution entered in a visit. A control is the incumbent under a false name."""

    role: Role
    solution: Solution
    solution_digest: Digest


class VisitRequest(Record):
    """All that a device visit needs. ``order`` indexes into contestants; workloads are visited in the order given."""

    definition: Definition
    workloads: tuple[Workload, ...] = Field(min_length=1)
    contestants: tuple[Contestant, ...] = Field(min_length=1)
    stage: Stage
    round: Natural
    seed: NonEmpty
    warmup_count: Natural
    sample_count: Natural
    input_sets: int = Field(ge=1)
    sampling_draws: Natural
    limits: Limits
    mode: Mode = "isolated"
    blob_root: str | None = None
    incumbent_errors: dict[str, dict[str, float]] = {}
    campaign: Natural = Field(default=0, exclude_if=absent)


class MachineFault(Record):
    """The machine's fault: never a verdict on a kernel. The supervisor of the run retries on a fresh worker."""

    cause: NonEmpty
    detail: str = ""


class VisitResult(Record):
    """Evaluations in contestant-major order, or the machine's fault that spoiled the visit (then none is kept)."""

    evaluations: tuple[Evaluation, ...]
    fault: MachineFault | None = None
    device_id: str
    wall_s: float

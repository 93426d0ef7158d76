"""Job (all that a device visit needs, looked up before measuring) and Evaluation (one verdict with every sample)."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from schemas.base import Digest, Natural, NonEmpty, Record, absent, first, unset
from schemas.environment import Conditions, Environment

Stage = Literal["screen", "confirm"]
Mode = Literal["isolated", "persistent"]
Timer = Literal["perf_counter", "monotonic", "cuda_event", "cupti"]
"""``monotonic``: the kernel's monotonic clock, read by the native driver around the call."""


class Status(StrEnum):
    """Verdict of one (solution, workload). CHEATED and INVALID are ours; the rest are the public ones."""

    PASSED = "PASSED"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    COMPILE_ERROR = "COMPILE_ERROR"
    TIMEOUT = "TIMEOUT"
    CHEATED = "CHEATED"
    INVALID = "INVALID"


PUBLIC_STATUS = {
    Status.CHEATED: "INCORRECT_NUMERICAL",
    Status.INVALID: "RUNTIME_ERROR",
} | {status: status.value for status in Status if status not in ("CHEATED", "INVALID")}


class Job(Record):
    """What is looked up before measuring. No seed, no time, no snapshot: equal questions have equal digests.

    ``effort`` says how hard the harness looked (calls, input sets, draws): a thorough run must not find a quick answer.
    """

    definition_digest: Digest
    workload_digest: Digest
    solution_digest: Digest
    policy_version: int
    stage: Stage
    round: Natural
    device_class: NonEmpty
    library_versions: dict[str, str]
    mode: Mode
    timer: Timer
    effort: NonEmpty
    role: Literal["candidate", "incumbent", "control"] = "candidate"
    campaign: Natural = Field(default=0, exclude_if=absent)
    """One independent repetition of the confirmation rounds: another number asks the same question afresh."""
    driver: str = Field(default="", exclude_if=absent)
    """Major version of the device's driver, where it has one."""
    timing_version: Natural = Field(default=1, exclude_if=first)
    """How times are taken, as `fib_core.index.staleness.POLICY_VERSION` numbers it."""


class ErrorFigures(Record):
    """How far one output was from the reference; None where it cannot be computed (non-finite, shapes differ)."""

    max_abs: float | None
    max_rel: float | None
    matched_ratio: float | None = Field(default=None, ge=0, le=1)


class Limits(Record):
    """What bounded the visit, and by which means."""

    visit_s: float = Field(gt=0)
    build_s: float = Field(gt=0)
    memory_bytes: int = Field(gt=0)
    memory_means: Literal["rlimit_as", "cgroup", "rss_poll"] = "rss_poll"
    enforced: tuple[str, ...] = Field(default=(), exclude_if=absent)
    """What really confined the candidate on that host, by name."""


class Evaluation(Record):
    """One verdict bound to its environment, with ALL timing samples in call order (empty unless calls were timed)."""

    schema_version: Literal["1"] = "1"
    job: Job
    status: Status
    rule: str | None = None
    reason: str = ""
    errors: dict[str, ErrorFigures] = {}
    samples_us: tuple[float, ...] = ()
    warmup_us: tuple[float, ...] = ()
    second_clock_us: tuple[float, ...] = Field(default=(), exclude_if=absent)
    """On a CUDA device: the samples of ``samples_us`` by events, where the Job's timer is CUPTI."""
    survivors: tuple[str, ...] | None = Field(default=None, exclude_if=unset)
    """Mutations (``mutation:output``) that this workload's rules would let pass: it is toothless for them."""
    reference_precision: str | None = Field(default=None, exclude_if=unset)
    """What the reference ran in, and why not in float64 where it did not."""
    convention: Literal["value_returning", "destination_passing"]
    cache_policy: str
    input_sets: Natural
    sample_draws: Natural | None = None
    sample_power: float | None = None
    """Against any total variation distance of 0.05, of the row that tells least."""
    sample_coarse_power: float | None = Field(default=None, exclude_if=unset)
    """Against 0.05 of the mass moved between layers of probability, blocks of ids or lanes."""
    build_s: float | None = Field(default=None, ge=0, exclude_if=unset)
    """Seconds from sources to a callable, where this workload was the first of its process: the compiler's wall time
    when the artefact was made (others may have compiled beside it) and loading in this process, as the supervisor's
    clock saw it. The process and its torch were there before; None where the compiler's time was not kept."""
    first_call_us: float | None = Field(default=None, ge=0, exclude_if=unset)
    """The first call of its process, unprimed, by the driver's host clock around the call (on a CUDA device the
    device's clock where that saw more): whatever the solution compiles, tunes or allocates then is in it."""
    first_shape_us: float | None = Field(default=None, ge=0, exclude_if=unset)
    """The first call on this workload in its process, by the same clock. Equal to ``first_call_us`` where both are."""
    roofline_us: float | None = Field(default=None, gt=0, exclude_if=unset)
    """What moving and computing the least would take at the peaks measured on this device (``fib_core.roofline``)."""
    environment: Environment
    conditions: Conditions | None = Field(default=None, exclude_if=unset)
    limits: Limits
    seed: str
    started_at: NonEmpty
    log: str = ""

    @property
    def finished(self) -> bool:
        """INVALID is never a finished evaluation: it is run again next time."""
        return self.status is not Status.INVALID


class JobPointer(Record):
    """The write-once object ``evaluations/by-job/<job>``."""

    job: Digest
    evaluation: Digest


def public_evaluation(evaluation: Evaluation, reference_us: float | None) -> dict[str, Any]:
    """The nearest public form: latencies in ms, statuses mapped, absent figures left out (never zero)."""
    from statistics import median

    body: dict[str, Any] = {
        "status": PUBLIC_STATUS[evaluation.status],
        "environment": {
            "hardware": evaluation.environment.device_name,
            "libs": evaluation.environment.libraries,
        },
        "timestamp": evaluation.started_at,
        "log": evaluation.log or evaluation.reason,
        "correctness": None,
        "performance": None,
    }
    figures = [item for item in evaluation.errors.values() if item.max_abs is not None]
    if evaluation.status in (Status.PASSED, Status.INCORRECT_NUMERICAL, Status.CHEATED):
        body["correctness"] = {
            "max_absolute_error": max((item.max_abs or 0.0 for item in figures), default=float("nan")),
            "max_relative_error": max((item.max_rel or 0.0 for item in figures), default=float("nan")),
            "extra": {"fib_status": evaluation.status.value, "fib_rule": evaluation.rule},
        }
    if evaluation.status is Status.PASSED and evaluation.samples_us:
        latency = median(evaluation.samples_us)
        baseline = reference_us if reference_us is not None else latency
        body["performance"] = {
            "latency_ms": latency / 1e3,
            "reference_latency_ms": baseline / 1e3,
            "speedup_factor": baseline / latency,
        }
    return body

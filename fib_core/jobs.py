"""Job of one (definition, workload, contestant) in a visit, so that whoever submits can look it up before measuring.

In: records. Out: a Job. Pure; the timer is the one that the device of this environment uses.
"""

from fib_core.index.staleness import POLICY_VERSION, major
from schemas.definition import Definition
from schemas.environment import Environment
from schemas.evaluation import Job, Timer
from schemas.visit import Contestant, VisitRequest
from schemas.workload import Workload

COARSE_DRAWS = 12_288
"""Draws of a row that tell 0.05 of the mass moved between layers of probability, blocks of ids or lanes, whatever the
support. What is moved token by token at random needs more, by the size of the support: ``sample_power`` says."""

STRICT_DRAWS_MAX = 65_536
"""Most draws of a row that are made to reach power 0.999 against any total variation distance of 0.05: enough for top-k
up to 2,000. A nucleus of a real vocabulary needs several times more; what it got is recorded as its power."""


def timer_of(environment: Environment) -> Timer:
    """The timer that a device class is measured with."""
    if not environment.device_class.startswith("sm_"):
        return "monotonic"
    return "cupti" if "nvidia-cuda-cupti" in environment.libraries else "cuda_event"


def driver_of(environment: Environment) -> str:
    """Major version of the driver, which makes an entry stale; empty where a device has none."""
    return major(environment.driver) if environment.driver else ""


def effort_of(request: VisitRequest) -> str:
    """Warm-up calls, samples, input sets and draws of a visit, in one word."""
    return f"w{request.warmup_count}-s{request.sample_count}-i{request.input_sets}-d{request.sampling_draws}"


def job_for(
    definition: Definition, workload: Workload, contestant: Contestant, request: VisitRequest, environment: Environment
) -> Job:
    """Seed, time and snapshot are not in it: equal questions have equal digests."""
    return Job(
        definition_digest=definition.digest,
        workload_digest=workload.digest,
        solution_digest=contestant.solution_digest,
        policy_version=definition.policy.version,
        stage=request.stage,
        round=request.round,
        device_class=environment.device_class,
        library_versions=environment.libraries,
        mode=request.mode,
        timer=timer_of(environment),
        effort=effort_of(request),
        role=contestant.role,
        campaign=request.campaign,
        driver=driver_of(environment),
        timing_version=POLICY_VERSION,
    )

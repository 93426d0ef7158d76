"""One visit as the orchestrator treats it: looked up by Job first, retried on a machine's fault, recorded at once.

In: a VisitRequest. Out: one Evaluation per (contestant, workload), measured now or found. A machine's fault is retried
on a fresh worker; what stays spoiled is INVALID, kept out of every aggregate and run again next time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from fib_core import ledger
from fib_core.jobs import job_for
from schemas.evaluation import Evaluation, Job, Status
from schemas.visit import Contestant, MachineFault, VisitRequest
from schemas.workload import Workload
from tasks.wiring import House

ATTEMPTS = 3
"""One try and two retries (contract: retried twice on a fresh worker)."""

Probe = Callable[[], bool]
"""Brings the incumbent to the device between attempts; True if it succeeded."""


@dataclass(frozen=True)
class Settled:
    """Evaluations in contestant-major order, and how many of them were found rather than measured."""

    evaluations: tuple[Evaluation, ...]
    found_count: int


def settle(house: House, request: VisitRequest, probe: Probe | None = None) -> Settled:
    """Evaluate what is not evaluated yet and return everything asked for; raises OutOfTime before a visit."""
    asked = [(entrant, workload) for entrant in request.contestants for workload in request.workloads]
    jobs = {
        _pair(entrant, workload): job_for(request.definition, workload, entrant, request, house.environment)
        for entrant, workload in asked
    }
    known = {pair: found for pair, job in jobs.items() if (found := ledger.find(house.store, job)) is not None}
    missing = _remaining(request, known)
    fresh: tuple[Evaluation, ...] = ()
    if missing is not None:
        house.budget.take()
        fresh = _measure(house, missing, jobs, probe)
    for evaluation in fresh:
        ledger.record(house.store, evaluation)
    house.budget.counts.update(measured=len(fresh), found=len(known))
    measured = {_pair_of(evaluation): evaluation for evaluation in fresh}
    ordered = [(known | measured)[_pair(entrant, workload)] for entrant, workload in asked]
    return Settled(tuple(ordered), found_count=len(known))


def _pair(entrant: Contestant, workload: Workload) -> tuple[str, str, str]:
    return entrant.role, entrant.solution_digest, workload.digest


def _pair_of(evaluation: Evaluation) -> tuple[str, str, str]:
    return evaluation.job.role, evaluation.job.solution_digest, evaluation.job.workload_digest


def _remaining(request: VisitRequest, known: dict[tuple[str, str, str], Evaluation]) -> VisitRequest | None:
    """What is still to do. A round that was cut short goes on under its own seed: the same secret inputs for all."""
    entrants = [
        entrant
        for entrant in request.contestants
        if any(_pair(entrant, workload) not in known for workload in request.workloads)
    ]
    if not entrants:
        return None
    workloads = [
        workload
        for workload in request.workloads
        if any(_pair(entrant, workload) not in known for entrant in entrants)
    ]
    seeds = {evaluation.seed for evaluation in known.values()}
    seed = seeds.pop() if len(seeds) == 1 else request.seed
    return request.model_copy(
        update={"contestants": tuple(entrants), "workloads": tuple(workloads), "seed": seed}
    )


def _measure(
    house: House, request: VisitRequest, jobs: dict[tuple[str, str, str], Job], probe: Probe | None
) -> tuple[Evaluation, ...]:
    incumbent_held = True
    for attempt in range(ATTEMPTS):
        result = house.runner.visit(request)
        if result.fault is None:
            return result.evaluations
        fault = result.fault
        smaller = _apart(request, fault)
        if smaller:
            return tuple(item for part in smaller for item in _measure(house, part, jobs, probe))
        if fault.cause == "bad_input":
            break
        if attempt + 1 < ATTEMPTS:
            incumbent_held = probe() and incumbent_held if probe is not None else False
    return _spoiled(house, request, jobs, fault, blame_candidate=incumbent_held and probe is not None)


def _apart(request: VisitRequest, fault: MachineFault) -> list[VisitRequest]:
    """A spoiled visit in smaller ones, so that one bad workload or contestant costs the others nothing."""
    if fault.cause == "bad_input" and len(request.workloads) > 1:
        return [request.model_copy(update={"workloads": (item,)}) for item in request.workloads]
    # A round stays whole: its contestants are compared with each other.
    if request.stage == "screen" and fault.cause != "bad_input" and len(request.contestants) > 1:
        return [request.model_copy(update={"contestants": (item,)}) for item in request.contestants]
    return []


def _spoiled(
    house: House,
    request: VisitRequest,
    jobs: dict[tuple[str, str, str], Job],
    fault: MachineFault,
    blame_candidate: bool,
) -> tuple[Evaluation, ...]:
    """Three failed workers with the incumbent fine between them are the candidate's doing; anything else is INVALID."""
    guilty = blame_candidate and fault.cause != "bad_input" and len(request.contestants) == 1
    return tuple(
        Evaluation(
            job=jobs[_pair(entrant, workload)],
            status=Status.RUNTIME_ERROR if guilty else Status.INVALID,
            rule="worker_lost" if guilty else fault.cause,
            reason=f"{ATTEMPTS} visits in a row ended with the machine's fault {fault.cause}: {fault.detail}"[:2000],
            convention="destination_passing"
            if entrant.solution.spec.destination_passing_style
            else "value_returning",
            cache_policy="not timed",
            input_sets=0,
            environment=house.environment,
            limits=request.limits,
            seed=request.seed,
            started_at=datetime.now(UTC).isoformat(),
        )
        for entrant in request.contestants
        for workload in request.workloads
    )

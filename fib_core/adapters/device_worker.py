"""DeviceWorker: the KernelRunner of this host's CPU slot. Supervises; imports no torch, runs no contestant's code.

In: VisitRequests. Out: VisitResults. The device's host-wide lock is held during a visit, so several workers (of several
runs, of several users) take turns. The process that owns the worker may be killed at any time: nothing outlives it.
"""

import errno
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from fib_core.builders.toolchain import ToolchainMissing
from fib_core.device.child import Child
from fib_core.device.conditions import conditions, count_others
from fib_core.device.contest import Contest
from fib_core.device.driver_build import ensure_driver
from fib_core.device.environment import describe_cpu
from fib_core.device.environment_cuda import describe_cuda
from fib_core.device.faults import MachineFailure, RefereeDied
from fib_core.device.floor import Floors, floors_for
from fib_core.device.lock import device_lock
from fib_core.device.outcome import Outcome, not_compiled
from fib_core.device.peaks import Ceiling, measure_cuda
from fib_core.device.referee_client import Referee
from fib_core.device.seating import Places, Seat, compile_ahead, compile_all, places_for, seat_on, visit_directory
from fib_core.device.zygote_client import Zygote
from fib_core.errors import ContractError, DeviceError
from fib_core.jobs import job_for, timer_of
from fib_core.roofline import Peaks
from schemas.environment import Environment
from schemas.evaluation import Evaluation
from schemas.solution import Solution
from schemas.visit import Contestant, MachineFault, VisitRequest, VisitResult

_LOG = logging.getLogger(__name__)
# New contents in every call: put in place by the core that calls, or behind a fill of the device's cache.
_ON_HOST, _ON_DEVICE = "fresh_inputs_near", "fresh_inputs_cold"
_KEPT_MAX = 8  # processes of persistent mode
_OS_CAUSES = {errno.ENOSPC: "disk_full", errno.EDQUOT: "disk_full", errno.ENOMEM: "out_of_memory"}


class DeviceWorker:
    """One per device and process; a context manager. ``cache_dir`` keeps what is compiled (default FIB_HOME/build)."""

    def __init__(self, cache_dir: Path | None = None, device: str = "cpu") -> None:
        self._cache_dir = cache_dir or Path(os.environ.get("FIB_HOME", ".fib")).absolute() / "build"
        self._device = device
        self._environment = describe_cpu() if device == "cpu" else describe_cuda(int(device.partition(":")[2]))
        self._ceiling = Ceiling(self._cache_dir, self._environment, None if device == "cpu" else self._peaks_of_device)
        self._zygote: Zygote | None = None
        self._kept: dict[str, Child] = {}
        self._turn = threading.Lock()
        self.referee_pid: int | None = None  # of the visit in progress, for people who look at the process table

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def zygote_pid(self) -> int | None:
        """Of the running fork server, if there is one."""
        return self._zygote.pid if self._zygote else None

    def describe(self) -> Environment:
        """The device, its class and the libraries that candidates will meet."""
        return self._environment

    def prepare(self, solutions: Sequence[Solution], build_s: float) -> None:
        """Compile C++ and CUDA ahead on all cores; what fails is compiled again by its visit, which reports it."""
        compile_ahead([item for item in solutions if self._runs(item)], self._cache_dir, build_s)

    def warm(self) -> None:
        """Start the fork server now instead of at the first visit."""
        with self._turn:
            self._ready_zygote()

    def close(self) -> None:
        """End the fork server and whatever it forked."""
        with self._turn:
            self._drop_zygote()

    def visit(self, request: VisitRequest) -> VisitResult:
        """Run one visit to its end; never raises for a contestant's or the machine's fault."""
        started = time.monotonic()
        self.referee_pid = None
        evaluations: list[Evaluation] = []
        fault = None
        try:
            with self._turn, device_lock(self._environment.device_id):
                started = time.monotonic()  # waiting for the device is nobody's visit
                evaluations = self._measure(request)
        except (DeviceError, ToolchainMissing, ContractError, OSError) as error:
            fault = MachineFault(cause=_cause(error), detail=str(error)[:4000])
            # Nothing of a spoiled visit may stay. A referee that died leaves a sound fork server behind.
            if isinstance(error, DeviceError) and not (isinstance(error, RefereeDied) and request.mode == "isolated"):
                self.close()
        if fault is not None:
            _LOG.warning("visit of %s spoiled by %s: %s", request.definition.name, fault.cause, fault.detail)
        return VisitResult(
            evaluations=() if fault else tuple(evaluations),
            fault=fault,
            device_id=self._environment.device_id,
            wall_s=time.monotonic() - started,
        )

    def _measure(self, request: VisitRequest) -> list[Evaluation]:
        compiled = compile_all(request, self._device, self._cache_dir)
        broken = compiled.broken
        others = None if self._kept else count_others(self._environment)  # before anything of ours is on the device
        zygote = self._ready_zygote()
        evaluations: list[Evaluation] = []
        referee = Referee(zygote, request, self._device, timer_of(self._environment))
        with (
            visit_directory(self._environment.device_id) as directory,
            seat_on(self._device, self._cache_dir) as seat,
            closing(referee),
            ExitStack() as entered,
        ):
            self.referee_pid = referee.pid
            peaks, clock_mhz = self._ceiling.peaks(seat.core), self._environment.clock_mhz
            floors = floors_for(request, peaks, self._device, clock_mhz)
            numbers = range(len(request.contestants))
            contests = [self._contest(request, referee, seat, floors, number) for number in numbers]
            places = [
                replace(self._places(directory / str(number), item), compile_s=compiled.took_s.get(number, 0.0))
                for number, item in enumerate(request.contestants)
            ]
            for number, contest in enumerate(contests):
                entered.callback(contest.close)
                if self._device != "cpu" and number not in broken:
                    contest.start(places[number])  # contexts take tenths of a second: all at once, before any turn
            referee.open()
            for number, contestant in enumerate(request.contestants):
                begun = datetime.now(UTC).isoformat()
                contest = contests[number]
                if number in broken:
                    outcomes = not_compiled(request, broken[number])
                else:
                    outcomes = contest.run(contestant, str(number), places[number])
                    self._keep(contestant, contest)
                enforced = contest.enforced + floors.names
                around = conditions(self._environment, others)
                found = self._evaluations(request, contestant, outcomes, begun, enforced)
                evaluations += [item.model_copy(update={"conditions": around}) if around else item for item in found]
        return evaluations

    def _runs(self, solution: Solution) -> bool:
        return self._device != "cpu" or solution.spec.language != "cuda"

    def _peaks_of_device(self, _: int | None) -> Peaks:
        return measure_cuda(self._own_zygote(), self._device)

    def _contest(
        self, request: VisitRequest, referee: Referee, seat: Seat, floors: Floors, number: int
    ) -> Contest:
        digest = request.contestants[number].solution_digest
        kept = self._kept.pop(digest, None) if request.mode == "persistent" else None
        return Contest(self._own_zygote(), referee, request, seat, floors, kept)

    def _places(self, directory: Path, contestant: Contestant) -> Places:
        return places_for(contestant.solution, contestant.solution_digest, directory, self._cache_dir)

    def _keep(self, contestant: Contestant, contest: Contest) -> None:
        """In persistent mode the process stays for the next visit of its solution."""
        child = contest.keep()
        if child is not None:
            self._kept[contestant.solution_digest] = child
        while len(self._kept) > _KEPT_MAX:
            self._kept.pop(next(iter(self._kept))).end()

    def _evaluations(
        self,
        request: VisitRequest,
        contestant: Contestant,
        outcomes: list[Outcome],
        begun: str,
        enforced: tuple[str, ...],
    ) -> Iterator[Evaluation]:
        warm = request.warmup_count
        limits = request.limits.model_copy(update={"memory_means": "rlimit_as", "enforced": enforced})
        passing = contestant.solution.spec.destination_passing_style
        for workload, outcome in zip(request.workloads, outcomes, strict=True):
            yield Evaluation(
                job=job_for(request.definition, workload, contestant, request, self._environment),
                status=outcome.verdict.status,
                rule=outcome.verdict.rule,
                reason=outcome.verdict.reason,
                errors=outcome.verdict.errors,
                warmup_us=outcome.times_us[:warm],
                samples_us=outcome.times_us[warm:],
                second_clock_us=outcome.second_us[warm:],
                survivors=outcome.survivors,
                reference_precision=outcome.precision,
                convention="destination_passing" if passing else "value_returning",
                cache_policy=_ON_HOST if self._device == "cpu" else _ON_DEVICE,
                input_sets=request.input_sets,
                sample_draws=outcome.draws,
                sample_power=outcome.power,
                sample_coarse_power=outcome.coarse_power,
                build_s=outcome.cold.build_s,
                first_call_us=outcome.cold.first_call_us,
                first_shape_us=outcome.cold.first_shape_us,
                roofline_us=outcome.roofline_us,
                environment=self._environment,
                limits=limits,
                seed=request.seed,
                started_at=begun,
                log=outcome.log,
            )

    def _own_zygote(self) -> Zygote:
        """That of the visit in progress: one that dies in it is not replaced by another, which has no referee."""
        assert self._zygote is not None, "a visit begins with a fork server"
        return self._zygote

    def _ready_zygote(self) -> Zygote:
        if self._zygote is not None and not self._zygote.alive():
            self._drop_zygote()
        if self._zygote is None:
            self._zygote = Zygote(ensure_driver(self._cache_dir), self._device)
        return self._zygote

    def _drop_zygote(self) -> None:
        for child in self._kept.values():
            with suppress(MachineFailure):  # its fork server may be gone, and the process with it
                child.end()
        self._kept.clear()
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None


def _cause(error: Exception) -> str:
    """Short stable word for a fault: bad data is told apart, so that nobody retries it."""
    if isinstance(error, MachineFailure):
        return error.cause
    if isinstance(error, ContractError):
        return "bad_input"
    if isinstance(error, ToolchainMissing):
        return "toolchain_missing"
    return _OS_CAUSES.get(getattr(error, "errno", None) or 0, "device")

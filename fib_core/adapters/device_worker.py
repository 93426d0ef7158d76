"""DeviceWorker: the KernelRunner of this host's CPU slot. Supervises; imports no torch, runs no contestant's code.

In: VisitRequests. Out: VisitResults. The device's host-wide lock is held during a visit, so several workers (of several
runs, of several users) take turns. The process that owns the worker may be killed at any time: nothing outlives it.
"""

import errno
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from fib_core.builders.compile_cpp import ensure_compiled
from fib_core.builders.python import place
from fib_core.builders.toolchain import ToolchainMissing
from fib_core.device.child import Child
from fib_core.device.contest import Contest, Outcome, Places, not_compiled
from fib_core.device.driver_build import ensure_driver
from fib_core.device.environment import describe_cpu
from fib_core.device.faults import MachineFailure
from fib_core.device.lock import device_lock
from fib_core.device.referee_client import Referee
from fib_core.device.zygote_client import Zygote
from fib_core.errors import BuildError, ContractError, DeviceError
from fib_core.jobs import job_for
from schemas.environment import Environment
from schemas.evaluation import Evaluation
from schemas.solution import Solution
from schemas.visit import Contestant, MachineFault, VisitRequest, VisitResult

_LOG = logging.getLogger(__name__)
_CACHE_POLICY = "fresh_inputs"
_KEPT_MAX = 8  # processes of persistent mode
_OS_CAUSES = {errno.ENOSPC: "disk_full", errno.EDQUOT: "disk_full", errno.ENOMEM: "out_of_memory"}


class DeviceWorker:
    """One per device and process; a context manager. ``cache_dir`` keeps what is compiled (default FIB_HOME/build)."""

    def __init__(self, cache_dir: Path | None = None) -> None:
        self._cache_dir = cache_dir or Path(os.environ.get("FIB_HOME", ".fib")).absolute() / "build"
        self._environment = describe_cpu()
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
        """Compile C++ ahead on all cores; what fails is compiled again by its visit, which reports it."""

        def compiled(solution: Solution) -> None:
            with suppress(BuildError):
                ensure_compiled(solution, self._cache_dir, build_s)

        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            list(pool.map(compiled, [item for item in solutions if item.spec.language == "cpp"]))

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
            if isinstance(error, DeviceError):
                self.close()  # nothing of a spoiled visit may stay; the next one starts a new fork server
        if fault is not None:
            _LOG.warning("visit of %s spoiled by %s: %s", request.definition.name, fault.cause, fault.detail)
        return VisitResult(
            evaluations=() if fault else tuple(evaluations),
            fault=fault,
            device_id=self._environment.device_id,
            wall_s=time.monotonic() - started,
        )

    def _measure(self, request: VisitRequest) -> list[Evaluation]:
        broken = self._compile_all(request)
        zygote = self._ready_zygote()
        evaluations: list[Evaluation] = []
        with _sources() as sources, _core_for_contestants() as core, _referee(zygote, request) as referee:
            self.referee_pid = referee.pid
            referee.open()
            for number, contestant in enumerate(request.contestants):
                begun = datetime.now(UTC).isoformat()
                enforced: tuple[str, ...] = ()
                if number in broken:
                    outcomes = not_compiled(request, broken[number])
                else:
                    outcomes, enforced = self._contest(request, referee, core, number, sources / str(number))
                evaluations += self._evaluations(request, contestant, outcomes, begun, enforced)
        return evaluations

    def _contest(
        self, request: VisitRequest, referee: Referee, core: int | None, number: int, directory: Path
    ) -> tuple[list[Outcome], tuple[str, ...]]:
        """One contestant through all workloads; in persistent mode its process is kept for the next visit."""
        contestant, zygote = request.contestants[number], self._ready_zygote()
        persistent = request.mode == "persistent"
        kept = self._kept.pop(contestant.solution_digest, None) if persistent else None
        contest = Contest(zygote, referee, request, core, kept)
        outcomes = contest.run(contestant, str(number), self._places(contestant, directory))
        child = contest.keep() if persistent else None
        if child is not None:
            self._kept[contestant.solution_digest] = child
        while len(self._kept) > _KEPT_MAX:
            self._kept.pop(next(iter(self._kept))).end()
        return outcomes, contest.enforced

    def _places(self, contestant: Contestant, directory: Path) -> Places:
        """What is compiled is shared; sources that are imported, and scratch space, belong to this visit."""
        scratch = directory / "scratch"
        scratch.mkdir(parents=True)
        if contestant.solution.spec.language == "cpp":
            return Places(self._cache_dir, scratch)
        place(contestant.solution, contestant.solution_digest, directory)
        return Places(directory, scratch)

    def _compile_all(self, request: VisitRequest) -> dict[int, BuildError]:
        """Compile before anybody is timed; failures by contestant number."""
        broken = {}
        for number, contestant in enumerate(request.contestants):
            if contestant.solution.spec.language == "cpp":
                try:
                    ensure_compiled(contestant.solution, self._cache_dir, request.limits.build_s)
                except ToolchainMissing:
                    raise
                except BuildError as error:
                    broken[number] = error
        return broken

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
                convention="destination_passing" if passing else "value_returning",
                cache_policy=_CACHE_POLICY,
                input_sets=request.input_sets,
                sample_draws=outcome.draws,
                sample_power=outcome.power,
                environment=self._environment,
                limits=limits,
                seed=request.seed,
                started_at=begun,
                log=outcome.log,
            )

    def _ready_zygote(self) -> Zygote:
        if self._zygote is not None and not self._zygote.alive():
            self._drop_zygote()
        if self._zygote is None:
            self._zygote = Zygote(ensure_driver(self._cache_dir))
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


@contextmanager
def _referee(zygote: Zygote, request: VisitRequest) -> Iterator[Referee]:
    """A referee that ends with the visit."""
    referee = Referee(zygote, request)
    try:
        yield referee
    finally:
        referee.end()


@contextmanager
def _sources() -> Iterator[Path]:
    """A directory for the sources that this visit imports, gone afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="fib-visit-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _core_for_contestants() -> Iterator[int | None]:
    """Give contestants a core of their own, where there are two: the supervising thread keeps off it meanwhile."""
    cores = os.sched_getaffinity(0)
    core = max(cores)
    if len(cores) == 1:
        yield core
        return
    os.sched_setaffinity(0, cores - {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, cores)



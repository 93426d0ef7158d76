"""Where contestants run, and what they find on disk: prepared before their visit, gone after it. Torch-free.

In: a device, solutions, a cache directory. Out: seats, places, compiled artefacts. Runs no contestant's code.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fib_core.builders import compile_cpp, compile_cuda
from fib_core.builders.python import place
from fib_core.builders.sources import took_s
from fib_core.builders.toolchain import ToolchainMissing
from fib_core.device.driver_build import clock_beside, ensure_driver
from fib_core.errors import BuildError
from schemas.solution import Solution
from schemas.visit import VisitRequest

COMPILERS = {"cpp": compile_cpp.ensure_compiled, "cuda": compile_cuda.ensure_compiled}


@dataclass(frozen=True)
class Seat:
    """Where contestants run: a core of the host (None: any), or a CUDA device with its clock library."""

    core: int | None
    device: str = "cpu"
    clock: str = ""


@dataclass(frozen=True)
class Places:
    """Where the contestant's code was put for it, and the only directory that it may write to."""

    built: Path
    scratch: Path
    compile_s: float | None = 0.0
    """What compiling took when it was done; None where that is not known."""

    def clear(self) -> None:
        """Forget what was written: nobody who meets the same inputs later may find answers here."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(exist_ok=True)


@contextmanager
def seat_on(device: str, cache_dir: Path) -> Iterator[Seat]:
    """A core of its own for contestants on the host; on a CUDA device every core may launch."""
    if device != "cpu":
        yield Seat(None, device, str(clock_beside(ensure_driver(cache_dir))))
        return
    with _core_for_contestants() as core:
        yield Seat(core)


@contextmanager
def visit_directory(device_id: str) -> Iterator[Path]:
    """A directory for the sources that this visit imports, gone afterwards.

    The caller holds the device, so whatever another visit of this device left (its worker was killed) goes as well.
    """
    prefix = f"fib-visit-{device_id}-"
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def places_for(solution: Solution, digest: str, directory: Path, cache_dir: Path) -> Places:
    """What is compiled is shared; sources that are imported, and scratch space, belong to this visit."""
    scratch = directory / "scratch"
    scratch.mkdir(parents=True)
    if solution.spec.language in COMPILERS:
        return Places(cache_dir, scratch)
    place(solution, digest, directory)
    return Places(directory, scratch)


def compile_ahead(solutions: Sequence[Solution], cache_dir: Path, build_s: float) -> None:
    """Compile on all cores what is not there yet; what fails is compiled again by its visit, which reports it."""

    def compiled(solution: Solution) -> None:
        with suppress(BuildError):
            COMPILERS[solution.spec.language](solution, cache_dir, build_s)

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(compiled, [item for item in solutions if item.spec.language in COMPILERS]))


@dataclass(frozen=True)
class Compiled:
    """By contestant number: who does not compile, and how long the others' compiler took (None: nobody noted it)."""

    broken: Mapping[int, BuildError]
    took_s: Mapping[int, float | None]


def compile_all(request: VisitRequest, device: str, cache_dir: Path) -> Compiled:
    """Compile before anybody is timed. Raises ``ToolchainMissing``."""
    broken: dict[int, BuildError] = {}
    seconds: dict[int, float | None] = {}
    for number, contestant in enumerate(request.contestants):
        language = contestant.solution.spec.language
        compiler = COMPILERS.get(language)
        if language == "cuda" and device == "cpu":
            broken[number] = BuildError("language 'cuda' cannot be built on this device; it has no CUDA")
        elif compiler is not None:
            try:
                made = compiler(contestant.solution, cache_dir, request.limits.build_s)
                seconds[number] = took_s(made.parent)
            except ToolchainMissing:
                raise
            except BuildError as error:
                broken[number] = error
    return Compiled(broken, seconds)


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

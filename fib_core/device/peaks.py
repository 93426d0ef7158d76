"""Peaks of a device for the roofline floor: measured once, kept on disk, refused where they cannot be trusted.

In: an environment, a cache directory, a core. Out: :class:`~fib_core.roofline.Peaks`, or None with a warning: then
there is no floor. A busy host measures too little, which would accuse honest kernels: hence the best of many short
bursts, rounds that must agree, and headroom. Torch-free; runs no contestant's code.
"""

import hashlib
import json
import logging
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from fib_core.builders import toolchain
from fib_core.builders.sources import once
from fib_core.device.channel import close_all
from fib_core.device.child import Child, Death
from fib_core.device.zygote_client import Zygote
from fib_core.errors import DeviceError
from fib_core.roofline import Peaks
from schemas.environment import Environment

_LOG = logging.getLogger(__name__)
_SOURCE = Path(__file__).parent / "native" / "peaks.cpp"
_FLAGS = ("-O3", "-march=native", "-std=c++17")
_ROUNDS = 5
_RUN_S, _BUILD_S = 20, 60
_TRIES = 3
HEADROOM = 2.0
"""Peaks are taken to be this much higher than measured: clocks that rise later, instructions that nobody tried."""
NARROW = 32.0
"""Operations on int8 tiles for one on vectors of float32, on the widest units of today's cores."""
NARROW_ON_CUDA = 4.0
"""The same for 4-bit floats against bfloat16 on tensor cores."""
# Between rounds a trustworthy peak varies less than this.
_SPREAD_MAX = 1.5
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


class Round(NamedTuple):
    """One measurement of everything."""

    near_bytes_per_s: float
    far_bytes_per_s: float
    flops_per_s: float


# What no core, and no CUDA device, that can run us leaves in either direction.
_CORE = Round(2e9, 5e8, 5e8), Round(5e12, 2e12, 2e12)
_CUDA = Round(2e10, 1e10, 1e11), Round(2e14, 1e14, 1e17)


class PeaksRefused(DeviceError):
    """The measured values are implausible, or do not agree with each other."""


@dataclass(frozen=True)
class Caches:
    """Bytes by level, as the kernel tells them; 0 where it does not."""

    first: int
    second: int
    third: int


class Ceiling:
    """The peaks of one worker's device. ``measure`` stands for the host's program in tests and on other devices."""

    def __init__(
        self, cache_dir: Path, environment: Environment, measure: Callable[[int | None], Peaks] | None = None
    ) -> None:
        self._cache_dir, self._environment = cache_dir, environment
        self._measure = measure or self._on_host
        self._peaks: Peaks | None = None
        self._tries = 0

    def peaks(self, core: int | None) -> Peaks | None:
        """Known, read, or measured now; the caller holds the device. None: no floor, which the log explains."""
        self._peaks = self._peaks or self._read()
        if self._peaks is None and self._tries < _TRIES:
            self._tries += 1
            try:
                self._peaks = self._measure(core)
                self._write(self._peaks)
            except (DeviceError, OSError, subprocess.SubprocessError) as error:
                _LOG.warning("no roofline floor (attempt %d of %d): %s", self._tries, _TRIES, error)
        return self._peaks

    def _on_host(self, core: int | None) -> Peaks:
        return measure_host(self._cache_dir, core)

    @property
    def _path(self) -> Path:
        facts = self._environment
        parts = [facts.device_id, facts.device_class, facts.device_name, str(facts.toolchain), str(read_caches())]
        parts += [path.read_text() for path in (_SOURCE, *sorted(Path(__file__).parent.glob("peaks*.py")))]
        key = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]
        return self._cache_dir / f"peaks-{key}.json"

    def _read(self) -> Peaks | None:
        try:
            return Peaks(**{name: float(value) for name, value in json.loads(self._path.read_text()).items()})
        except (OSError, ValueError, TypeError, AttributeError):
            return None

    def _write(self, peaks: Peaks) -> None:
        self._cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=self._cache_dir, delete=False) as file:
            json.dump(asdict(peaks), file)
        Path(file.name).replace(self._path)


def measure_host(cache_dir: Path, core: int | None) -> Peaks:
    """Peaks of one core; raises :class:`PeaksRefused` where they are not to be trusted."""
    caches = read_caches()
    if not caches.first or not caches.second:
        raise PeaksRefused("the kernel does not tell the sizes of this host's caches")
    program = _program(cache_dir)
    near, far = caches.first // 2, _far_set_bytes(caches)
    command = [str(program), str(-1 if core is None else core), str(_ROUNDS), str(near), str(far)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_S, check=False)
    if done.returncode != 0:
        raise PeaksRefused(f"the program that measures peaks ended with {done.returncode}: {done.stderr[-300:]}")
    best = trusted([Round(*map(float, line.split())) for line in done.stdout.splitlines()], *_CORE)
    return Peaks(
        near_bytes_per_s=HEADROOM * max(best.near_bytes_per_s, best.far_bytes_per_s),
        far_bytes_per_s=HEADROOM * best.far_bytes_per_s,
        near_capacity_bytes=float(caches.first + caches.second),
        flops_per_s=HEADROOM * NARROW * best.flops_per_s,
    )


def measure_cuda(zygote: Zygote, device: str) -> Peaks:
    """Peaks of a CUDA device, measured by a forked process of ours; raises :class:`PeaksRefused`.

    The near level is the second-level cache, which copies do not fill: it is taken to be twice the memory at least.
    """
    child = Child(zygote, "peaks_cuda", {"device": device, "rounds": _ROUNDS})
    try:
        reply, fds = child.ask({}, _RUN_S)
        close_all(fds)
    except Death as death:
        raise PeaksRefused(f"the process that measures peaks is gone ({death}): {child.log[-300:]}") from death
    finally:
        child.end()
    best = trusted([Round(*values) for values in reply["rounds"]], *_CUDA)
    return Peaks(
        near_bytes_per_s=HEADROOM * max(best.near_bytes_per_s, 2 * best.far_bytes_per_s),
        far_bytes_per_s=HEADROOM * best.far_bytes_per_s,
        near_capacity_bytes=float(reply["near_capacity_bytes"]),
        flops_per_s=HEADROOM * NARROW_ON_CUDA * best.flops_per_s,
    )


def trusted(rounds: Sequence[Round], least: Round, most: Round) -> Round:
    """The best of every value, if rounds agree and the values can be true; raises :class:`PeaksRefused`."""
    if len(rounds) < _ROUNDS:
        raise PeaksRefused(f"{len(rounds)} rounds measured, {_ROUNDS} wanted")
    best = []
    for name, values, low, high in zip(Round._fields, zip(*rounds, strict=True), least, most, strict=True):
        ordered = sorted(values)
        if not low <= ordered[0] <= ordered[-1] <= high:
            raise PeaksRefused(f"{name} of {ordered[0]:.3g} to {ordered[-1]:.3g} cannot be true")
        if ordered[-1] > _SPREAD_MAX * ordered[len(ordered) // 2]:
            raise PeaksRefused(f"{name} is unstable: {ordered[0]:.3g} to {ordered[-1]:.3g}; is the host busy?")
        best.append(ordered[-1])
    return Round(*best)


def read_caches(place: Path = _CACHES) -> Caches:
    """Data caches of the first core."""
    sizes: dict[int, int] = {}
    for index in sorted(place.glob("index*")):
        try:
            kind, level = (index / "type").read_text().strip(), int((index / "level").read_text())
            size = (index / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind in ("Data", "Unified") and size.endswith("K") and size[:-1].isdigit():
            sizes[level] = int(size[:-1]) << 10
    return Caches(*(sizes.get(level, 0) for level in (1, 2, 3)))


def _far_set_bytes(caches: Caches) -> int:
    """Far larger than the second level, and well inside the third if there is one."""
    wanted = 8 * (caches.first + caches.second)
    return max(min(wanted, caches.third // 2), 2 * caches.second) if caches.third else wanted


def _program(cache_dir: Path) -> Path:
    compiler = toolchain.compiler()
    parts = [toolchain.compiler_version(compiler), *_FLAGS, _SOURCE.read_text(), *sorted(toolchain.cpu_flags())]
    key = hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]

    def fill(directory: Path) -> None:
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(directory / "peaks")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_S, check=False)
        if done.returncode != 0:
            raise PeaksRefused(f"{_SOURCE.name} does not compile with {compiler}: {done.stderr[-2000:]}")

    return once(cache_dir / f"peaks-{key}", fill) / "peaks"

"""The native clock by ctypes, for tests and measurements: compiled where it is used, loaded, opened in one process."""

import ctypes
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fib_core.builders import toolchain

SOURCE = Path(__file__).parents[3] / "fib_core/device/native/cuda_clock.cpp"
_TEXT = 4096


def compile_clock(directory: Path) -> Path:
    """Needs a C++ compiler, no CUDA."""
    library = directory / "cuda_clock.so"
    flags = ["-O2", "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([toolchain.compiler(), *flags, str(SOURCE), "-o", str(library)], check=True, timeout=100)
    return library


@dataclass(frozen=True)
class Reading:
    """One timed call. ``cupti_ns`` below zero says why it is missing."""

    code: int
    event_ns: int
    cupti_ns: int
    host_ns: int
    kernels: int


@dataclass(frozen=True)
class Details:
    """What the device did in one span, and how long its fill and the launches took; ``fetched``: copies to the host."""

    busy_ns: int
    fill_ns: int
    launch_ns: int
    kernels: int
    copies: int
    fills: int
    early: bool
    fetched: int
    idle_ns: int
    digest: int
    names: list[str]


class Clock:
    """``init`` may run before a fork, ``open`` after it."""

    def __init__(self, library: Path) -> None:
        self._lib = ctypes.CDLL(str(library))
        self._text = ctypes.create_string_buffer(_TEXT)

    def init(self, cupti: Path | None) -> tuple[int, str]:
        path = str(cupti).encode() if cupti is not None else None
        return self._lib.fib_clock_init(path, self._text, ctypes.c_size_t(_TEXT)), self._text.value.decode()

    def open(self, device: int = 0) -> tuple[int, str]:
        code = self._lib.fib_clock_open(device, self._text, ctypes.c_size_t(_TEXT))
        return code, self._text.value.decode()

    def flush(self, size: int) -> int:
        return self._lib.fib_clock_flush(ctypes.c_size_t(size))

    def begin(self, stream: int = 0) -> int:
        return self._lib.fib_clock_begin(ctypes.c_void_p(stream))

    def end(self, stream: int = 0) -> Reading:
        event, cupti, host, kernels = ctypes.c_int64(), ctypes.c_int64(), ctypes.c_int64(), ctypes.c_int32()
        out = [ctypes.byref(item) for item in (event, cupti, host, kernels)]
        code = self._lib.fib_clock_end(ctypes.c_void_p(stream), *out)
        return Reading(code, event.value, cupti.value, host.value, kernels.value)

    def time(self, call: Callable[[], object], stream: int = 0) -> Reading:
        code = self.begin(stream)
        if code != 0:
            return Reading(code, 0, 0, 0, 0)
        call()
        return self.end(stream)

    def details(self, between: bool = False) -> Details:
        facts, digest = (ctypes.c_int64 * 9)(), ctypes.c_uint64()
        code = self._lib.fib_clock_details(
            int(between), facts, ctypes.byref(digest), self._text, ctypes.c_size_t(_TEXT)
        )
        assert code == 0, code
        names = self._text.value.decode(errors="replace").splitlines()
        return Details(*facts[:6], bool(facts[6]), facts[7], facts[8], digest.value, names)

    def sync(self) -> int:
        return self._lib.fib_clock_sync()

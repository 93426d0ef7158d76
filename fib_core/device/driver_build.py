"""The native driver as a shared object: compiled once per content and compiler, by whoever starts a fork server.

In: a cache directory. Out: a path. Torch-free; raises ``ToolchainMissing`` where there is no C++ compiler.
"""

import hashlib
import subprocess
from pathlib import Path

from fib_core.builders import toolchain
from fib_core.builders.sources import once
from fib_core.errors import DeviceError

_SOURCES = Path(__file__).parent / "native"
_FLAGS = ("-O2", "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden")
_READ_ONLY_TABLES = ("-Wl,-z,relro", "-Wl,-z,now")
_LIBRARY = "fib_driver.so"
_CLOCK = "fib_cuda_clock.so"
_BUILD_S = 120


def ensure_driver(cache_dir: Path) -> Path:
    """Path of the compiled driver; the clock library for CUDA devices lies beside it (:func:`clock_beside`)."""
    compiler = toolchain.compiler()
    parts = [toolchain.compiler_version(compiler).encode(), *(item.encode() for item in _FLAGS)]
    parts += [path.read_bytes() for path in sorted(_SOURCES.iterdir())]
    key = hashlib.sha256(b"\x1f".join(parts)).hexdigest()[:16]
    return once(cache_dir / f"driver-{key}", lambda directory: _compile(compiler, directory)) / _LIBRARY


def clock_beside(driver: Path) -> Path:
    """The clock library that was compiled with this driver."""
    return driver.parent / _CLOCK


def _compile(compiler: str, directory: Path) -> None:
    for pattern, library in (("driver*.cpp", _LIBRARY), ("cuda_clock.cpp", _CLOCK)):
        sources = [str(path) for path in sorted(_SOURCES.glob(pattern))]
        command = [compiler, *_FLAGS, *_READ_ONLY_TABLES, *sources, "-o", str(directory / library), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_S, check=False)
        if done.returncode != 0:
            raise DeviceError(f"{pattern} does not compile with {compiler}: {done.stderr[-2000:]}")

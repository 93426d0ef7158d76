"""Facts about the CPU device of this host, without importing torch: class, identity, libraries, toolchain, clock.

Out: an :class:`Environment`. The host's name leaves only as a digest.
"""

import hashlib
import platform
import socket
from pathlib import Path

import psutil

from fib_core.builders.toolchain import cpu_flags, toolchain_name, version_of
from schemas.environment import Environment

_LIBRARIES = ("torch", "triton", "apache-tvm-ffi", "numpy")
# The x86-64 psABI's micro-architecture levels, by the flags that the kernel reports.
_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}),
    ("x86-64-v2", {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)
THREADS = 1


def describe_cpu() -> Environment:
    """The environment that every candidate on this host's CPU slot meets."""
    host = hashlib.sha256(socket.gethostname().encode()).hexdigest()
    versions = {name: version_of(name) for name in _LIBRARIES}
    python = platform.python_version()
    return Environment(
        device_class=f"{instruction_set()}/{THREADS}t",
        device_id=f"cpu0-{host[:12]}",
        device_name=_model_name(),
        hostname_digest=host,
        clock_mhz=_clock_mhz(),
        threads=THREADS,
        python=python,
        libraries={"python": python} | {name: version for name, version in versions.items() if version},
        toolchain=toolchain_name(),
    )


def instruction_set() -> str:
    """Micro-architecture level, or the machine's name where there are no levels."""
    machine = platform.machine()
    if machine not in ("x86_64", "AMD64"):
        return machine or "unknown"
    return next((name for name, needed in _LEVELS if needed <= cpu_flags()), "x86-64-v1")


def _model_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine() or "unknown CPU"


def _clock_mhz() -> float | None:
    """Highest clock if the host knows it; a current reading would change from call to call."""
    frequency = psutil.cpu_freq()
    return float(frequency.max) if frequency is not None and frequency.max else None

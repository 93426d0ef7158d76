"""What this process runs on, in the words of the index. In: CPU flags, threads, CUDA properties. Out: a class string.

A device class is an architecture and its size (``x86-64-v3/1t``, ``sm_90a/132/hbm3e``), never a marketing name. What
only torch knows is asked by the caller. The device floor derives the same words; a test keeps the two equal.
"""

import functools
import platform

from fib_core.builders.toolchain import cpu_flags

# Micro-architecture levels of the x86-64 psABI, highest first, by the flags that Linux reports.
_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}),
    ("x86-64-v2", {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)
# Memory kinds by what a CUDA device calls itself; the first match counts. A name that is not here matches no entry.
_MEMORY = (
    ("GB200", "hbm3e"), ("B200", "hbm3e"), ("B300", "hbm3e"), ("H200", "hbm3e"), ("GH200", "hbm3e"), ("H20", "hbm3"),
    ("H100 PCIe", "hbm2e"), ("H100", "hbm3"), ("H800", "hbm3"), ("A100-SXM4-40GB", "hbm2"), ("A100", "hbm2e"),
    ("L40", "gddr6"), ("L4", "gddr6"), ("A10", "gddr6"), ("RTX 5090", "gddr7"), ("RTX 4090", "gddr6x"),
)  # fmt: skip


def cpu_class(threads: int) -> str:
    """Class of a CPU call that may use ``threads`` threads."""
    return f"{cpu_isa()}/{threads}t"


@functools.cache
def cpu_isa() -> str:
    """The highest x86-64 level of this machine, or the machine's own name elsewhere (``aarch64``)."""
    machine = platform.machine()
    if machine not in ("x86_64", "AMD64"):
        return machine or "unknown"
    return isa_of(cpu_flags())


def isa_of(flags: frozenset[str]) -> str:
    """The highest level whose flags are all present."""
    return next((level for level, needed in _LEVELS if needed <= flags), "x86-64-v1")


def cuda_class(capability: tuple[int, int], sm_count: int, name: str) -> str:
    """Class of a CUDA device: canonical architecture (``a``: with its own instructions), SM count, memory kind."""
    major, minor = capability
    memory = next((kind for part, kind in _MEMORY if part in name), "unknown")
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}/{sm_count}/{memory}"

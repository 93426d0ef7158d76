"""What this process runs on, in the words of the index. In: CPU flags, threads, CUDA properties. Out: a class string.

A device class is an architecture and its size (``x86-64-v3/1t``, ``sm_90a/132/hbm3e``), never a marketing name. What
only torch knows is asked by the caller. The device floor derives the same words; a test keeps the two equal.
"""

import functools
import platform
import re

from fib_core.builders.toolchain import cpu_flags

# Micro-architecture levels of the x86-64 psABI, highest first, by the flags that Linux reports.
_LEVELS = (
    ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
    ("x86-64-v3", {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}),
    ("x86-64-v2", {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"}),
)
# The one alias table: words of a marketing name -> architecture, multiprocessors where a device of that name was seen
# here, memory kind. All words must be there; the row with the most words wins. A name in no row matches no entry.
_NAMES: tuple[tuple[str, str, int | None, str], ...] = (
    ("H200", "sm_90a", 132, "hbm3e"), ("GH200 144G", "sm_90a", None, "hbm3e"), ("GH200", "sm_90a", None, "hbm3"),
    ("H100", "sm_90a", None, "hbm3"), ("H100 PCIE", "sm_90a", None, "hbm2e"), ("H800", "sm_90a", None, "hbm3"),
    ("H20", "sm_90a", None, "hbm3"), ("H20 3E", "sm_90a", None, "hbm3e"),
    ("B200", "sm_100a", None, "hbm3e"), ("GB200", "sm_100a", None, "hbm3e"),
    ("B300", "sm_103a", None, "hbm3e"), ("GB300", "sm_103a", None, "hbm3e"),
    ("A100", "sm_80", None, "hbm2e"), ("A100 40GB", "sm_80", None, "hbm2"), ("A10", "sm_86", None, "gddr6"),
    ("A10G", "sm_86", None, "gddr6"), ("L4", "sm_89", None, "gddr6"), ("L40", "sm_89", None, "gddr6"),
    ("L40S", "sm_89", None, "gddr6"), ("RTX 4090", "sm_89", None, "gddr6x"), ("RTX 5090", "sm_120a", None, "gddr7"),
)  # fmt: skip
_SPELLINGS = ("NVIDIA {}", "NVIDIA_{}", "{}", "NVIDIA {} NVL", "NVIDIA {} SXM", "{}-SXM")
UNKNOWN = "unknown"
_CPU = re.compile(r"[A-Za-z0-9_\-]+/[1-9][0-9]*t")
_CUDA = re.compile(r"sm_([0-9]+)([0-9])a?/([1-9][0-9]*)/([a-z0-9]+)")


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
    row = _row_of(name)
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}/{sm_count}/{row[3] if row else UNKNOWN}"


def class_of_name(name: str) -> str | None:
    """The class that every device of this marketing name has; None where the name alone does not tell."""
    row = None if "MIG" in _words(name) else _row_of(name)
    return f"{row[1]}/{row[2]}/{row[3]}" if row and row[2] else None


def aliases_of(device_class: str) -> tuple[str, ...]:
    """Ways to write the marketing names under which a device of this class may present itself; none for a CPU."""
    found = _CUDA.fullmatch(device_class)
    if found is None:
        return ()
    architecture, count, memory = device_class.split("/")
    rows = [row for row in _NAMES if (row[1], row[3]) == (architecture, memory)]
    # Names that were seen with this very size, else names of any size that have the architecture and the memory.
    rows = [row for row in rows if row[2] == int(count)] or [row for row in rows if row[2] is None]
    return tuple(spelling.format(row[0]) for row in rows for spelling in _SPELLINGS)


def class_under(device_class: str, alias: str) -> str:
    """What a device of this architecture and size calls itself when it is named ``alias``."""
    found = _CUDA.fullmatch(device_class)
    if found is None:
        return device_class
    return cuda_class((int(found.group(1)), int(found.group(2))), int(found.group(3)), alias)


def is_canonical(device_class: str) -> bool:
    """True if some process may derive this class: nobody ever finds an entry under any other word."""
    found = _CUDA.fullmatch(device_class)
    return _CPU.fullmatch(device_class) is not None if found is None else found.group(4) != UNKNOWN


def _row_of(name: str) -> tuple[str, str, int | None, str] | None:
    fitting = [row for row in _NAMES if _words(name).issuperset(row[0].split())]
    return max(fitting, key=lambda row: len(row[0].split()), default=None)


def _words(name: str) -> set[str]:
    """Vendors write one name with spaces, underscores or hyphens."""
    return set(re.split(r"[\s_\-/]+", name.upper()))

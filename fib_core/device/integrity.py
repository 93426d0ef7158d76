"""Is the native code that measures still the code that was loaded? Read from outside the candidate's process.

In: the fork server's pid, later a child's. Out: what differs: the driver and the clock of a CUDA device (and their
tables of functions), the C library, the interpreter, the kernel's clock page. Torch-free. A process that writes its own
code and restores it before the look is not found; what it wrote meanwhile is bounded by the referee's own clock and by
its look at every value.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from fib_core.device.driver_build import clock_beside

_CLOCK_PAGE = "[vdso]"
_INTERPRETERS = ("libpython3", "python3")
_C_LIBRARY = "libc.so"


@dataclass(frozen=True)
class _Range:
    name: str
    start: int
    content: bytes


class NativeCode:
    """Read-only mappings of one process before any contestant existed; its forks have them at the same places."""

    def __init__(self, pid: int, driver: Path) -> None:
        self._ours = (driver.name, clock_beside(driver).name)
        self._ranges: list[_Range] = []
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            for name, start, end in _mappings(pid, self._ours):
                self._ranges.append(_Range(name, start, os.pread(memory.fileno(), end - start, start)))

    @property
    def watched(self) -> frozenset[str]:
        """Names of what is compared."""
        return frozenset(item.name for item in self._ranges)

    def changed_in(self, pid: int, whole: bool = True) -> str | None:
        """Name of what a child's copy has different; None if nothing, or if the child is gone.

        ``whole`` false looks at our own libraries and the clock page only, which takes microseconds.
        """
        looked_at = [item for item in self._ranges if whole or item.name in (*self._ours, _CLOCK_PAGE)]
        try:
            with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
                for item in looked_at:
                    found = os.pread(memory.fileno(), len(item.content), item.start)
                    if not found:
                        return None  # it has ended, and its memory with it
                    if found != item.content:
                        return item.name
        except (FileNotFoundError, ProcessLookupError):
            return None
        except OSError as error:
            return f"memory that cannot be read ({error.strerror})"
        return None


def _mappings(pid: int, own: tuple[str, ...]) -> list[tuple[str, int, int]]:
    """(name, start, end) of the mappings that no one should write: code of all, and our libraries' read-only data."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, permissions, *rest = line.split(None, 5)
        name = Path(rest[-1]).name if len(rest) == 4 else ""
        ours = name in own and "w" not in permissions
        code = "x" in permissions and (name == _CLOCK_PAGE or name.startswith((_C_LIBRARY, *_INTERPRETERS)))
        if ours or code:
            start, end = (int(part, 16) for part in span.split("-"))
            found.append((name, start, end))
    return found

"""A process and everything it started: who they are, and how much CPU time they used. Torch-free.

In: a pid. Out: pids, nanoseconds. What a descendant used stays counted when it ends: ending one gives no credit.
Descendants of descendants and of threads count like children. Knows nothing of verdicts.
"""

import os
import time
from contextlib import suppress
from pathlib import Path

PROCESSES_MAX = 64
"""More than these are nobody's kernel; whoever counts a family looks no further than twice as many."""


def family(pid: int) -> list[int]:
    """The process and its living descendants, whichever thread started them."""
    found, queue = [pid], [pid]
    while queue and len(found) <= 2 * PROCESSES_MAX:
        children = _children(queue.pop())
        found += children
        queue += children
    return found


def _children(pid: int) -> list[int]:
    """Of all threads. Whoever ends while we look has none: searching by pattern would raise there."""
    found: list[int] = []
    tasks = Path(f"/proc/{pid}/task")
    with suppress(OSError):
        for thread in os.listdir(tasks):  # noqa: PTH208 (iterdir is no shorter, and this is asked around every call)
            with suppress(OSError):
                found += map(int, (tasks / thread / "children").read_text().split())
    return found


class CpuTime:
    """CPU time so far of one family, exact for those of its members that sleep."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended_ns = 0
        self._living_ns: dict[int, int] = {}

    def used_ns(self) -> int:
        """Of the process and of all its descendants that were alive at any asking; never less than before."""
        now_ns = {pid: spent for pid in family(self._pid) if (spent := _clock_ns(pid)) is not None}
        for pid, before_ns in self._living_ns.items():
            if now_ns.get(pid, -1) < before_ns:  # it has ended; the number may be somebody else's by now
                self._ended_ns += before_ns
        self._living_ns = now_ns
        return self._ended_ns + sum(now_ns.values())


def _clock_ns(pid: int) -> int | None:
    """The kernel's CPU clock of another process, all its threads together; None once it is gone."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return None

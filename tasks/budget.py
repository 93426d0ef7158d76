"""The time that a run may spend: asked for between visits, never in the middle of one.

In: a limit in seconds (none = no limit). Out: permission for the next visit, or OutOfTime; and how far the run came.
Knows no orchestrator: what a stopped task looks like is ``tasks.stoppable``.
"""

import time
from collections import Counter
from dataclasses import dataclass, field


class OutOfTime(Exception):
    """The budget is spent; the message says where the run stopped."""


@dataclass
class Budget:
    """Wall time from the start of the run. ``counts`` and ``place`` say how far it came."""

    limit_s: float | None = None
    started: float = field(default_factory=time.monotonic)
    place: str = "the start"
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def spent_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def take(self) -> None:
        """Ask for one visit; raises OutOfTime. The first is always granted: a run that is started again gets on."""
        if self.limit_s is not None and self.counts["visits"] and self.spent_s >= self.limit_s:
            raise OutOfTime(self.place)
        self.counts["visits"] += 1

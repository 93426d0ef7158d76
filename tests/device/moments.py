"""When to kill: seeded moments that are shares of what an undisturbed visit takes on this host.

A moment in seconds would come after the end on a fast host and always in the first call on a slow one.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

SEED = int(os.environ.get("FIB_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
TRIES = 10
"""Moments for each blow that is wanted. One in a few comes too late, even on a host that suddenly got faster, since
the pace follows: ten in a row do not."""


def shares(name: str, count: int) -> Iterator[float]:
    """The same ``count`` numbers from [0, 1) for the same seed and name."""
    chance = random.Random(f"{SEED}/{name}")
    return islice(iter(chance.random, None), count)


@dataclass
class Pace:
    """The shortest undisturbed visit of this host so far, in seconds."""

    visit_s: float

    def learn(self, visit_s: float) -> None:
        """An undisturbed visit took so long: a host that got faster makes the next moment earlier."""
        self.visit_s = min(self.visit_s, visit_s)

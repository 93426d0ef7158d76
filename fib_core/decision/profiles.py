"""How thorough a run is: the two profiles and the fixed margins of the decision rule.

Numbers that two people must agree on; rooms take them as arguments and own none.

Screening: a candidate may become a finalist if, at some timed key, the screen saw it at ``screen_ratio_min`` times the
incumbent's speed or more. In ``full`` that is the incumbent's speed less a near-tie: one visit scatters by more than
the gains that matter, so whoever is within 3 % of the incumbent (let alone of a best that beats it) is not told apart
from a winner. Whoever adds most over the keys is taken first, at most ``finalist_limit``; the incumbent always comes.
"""

from dataclasses import dataclass

from schemas.decision import Profile

NEAR_TIE = 0.03
"""Difference of two screen ratios that says nothing."""


@dataclass(frozen=True)
class Look:
    """A planned look at the data: after ``rounds`` rounds, at significance level ``alpha``."""

    rounds: int
    alpha: float


@dataclass(frozen=True)
class Rules:
    """Everything that the screen and the decision need to know about the profile."""

    profile: Profile
    looks: tuple[Look, ...]
    min_effect: float
    noise_factor: float
    """A/A standard errors that an estimate must reach, where that is more than ``min_effect``."""
    finalist_limit: int
    timed_limit: int | None
    screen_ratio_min: float
    margin: float = 0.02
    drift_max: float = 0.04
    """Log-change of the incumbent's time between the halves of a contest beyond which the machine is at fault."""
    families_min: int = 5
    confidence: float = 0.95

    @property
    def rounds(self) -> int:
        """Rounds at the last look."""
        return self.looks[-1].rounds


QUICK = Rules(
    profile="quick",
    looks=(Look(8, 0.05),),
    min_effect=0.10,
    noise_factor=0.0,
    finalist_limit=2,
    timed_limit=4,
    screen_ratio_min=1.05,
    drift_max=0.07,
)
FULL = Rules(
    profile="full",
    looks=(Look(10, 0.02), Look(20, 0.03)),
    min_effect=0.01,
    # Stricter than the contract's 2: under 1.3 % of noise a round, 1 % is 2.4 standard errors at the first look (most
    # false promotions are early ones) and 3.4 at the last; on a noisy worker nothing else would guard the incumbent.
    noise_factor=3.0,
    finalist_limit=3,
    timed_limit=None,
    screen_ratio_min=1.0 - NEAR_TIE,
)
RULES: dict[Profile, Rules] = {"quick": QUICK, "full": FULL}

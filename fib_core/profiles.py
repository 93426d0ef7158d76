"""How thorough a run is: the two profiles and the fixed margins of the decision rule.

Numbers that two people must agree on; rooms take them as arguments and own none.
"""

from dataclasses import dataclass

from schemas.decision import Profile


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
    finalist_limit: int
    timed_limit: int | None
    screen_ratio_min: float
    margin: float = 0.02
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
)
FULL = Rules(
    profile="full",
    looks=(Look(10, 0.02), Look(20, 0.03)),
    min_effect=0.01,
    noise_factor=2.0,
    finalist_limit=3,
    timed_limit=None,
    screen_ratio_min=1.0,
)
RULES: dict[Profile, Rules] = {"quick": QUICK, "full": FULL}

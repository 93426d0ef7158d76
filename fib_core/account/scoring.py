"""Scores with their names: what was counted, against which baseline, with which weights, on which snapshot.

In: populations of trials. Out: :class:`Score`, each of which can be quoted alone. Train, holdout and stress are never
pooled; INVALID is kept out and counted. Knows formulas (``scores``), not where trials come from.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from fib_core.account.scores import Trial, area, fast_p
from schemas.base import Digest
from schemas.snapshot import Split

THRESHOLDS = (0.0, 1.0, 1.1, 1.5, 2.0)
"""Of fast_p, where nobody asks for others: correct, faster at all, faster by a tenth, by half, twice as fast."""
AREA_TO = 4.0
"""Where the area ends unless told: beyond it a ratio counts no more."""
EVERY = "all definitions"
SCREEN_TIMES = "screen times: ranking only"
CONFIRMED = "confirmed estimates"


@dataclass(frozen=True)
class Score:
    """One aggregate and everything that it must be quoted with. ``parameter`` is p, or where an area ends."""

    name: str
    parameter: float | None
    value: float | None
    """None where what is missing would decide it; ``untimed`` says how much that is."""
    definition: str
    side: Split
    population: str
    times: str
    count: int
    invalid: int
    """Points kept out since the machine spoiled them; not part of ``count``."""
    untimed: int
    """Points kept out since nobody timed them; not part of ``count``."""
    weights: str
    baseline: tuple[Digest, ...]
    """Incumbents that ratios are against: one a definition."""
    snapshot_digest: Digest

    @property
    def row(self) -> dict[str, Any]:
        """For tables and JSON."""
        return asdict(self) | {"baseline": list(self.baseline)}


@dataclass(frozen=True)
class Population:
    """Trials of one side of the split, with what their scores will be called."""

    definition: str
    side: Split
    what: str
    times: str
    trials: tuple[Trial, ...]
    baseline: tuple[Digest, ...]
    snapshot_digest: Digest
    invalid: int = 0
    weights: str = "none"

    def score(self, name: str, parameter: float | None, value: float | None, untimed: int = 0) -> Score:
        """``value`` with the names of this population."""
        return Score(
            name=name, parameter=parameter, value=value, definition=self.definition, side=self.side,
            population=self.what, times=self.times, count=len(self.trials), invalid=self.invalid, untimed=untimed,
            weights=self.weights, baseline=self.baseline, snapshot_digest=self.snapshot_digest,
        )  # fmt: skip


def speed_scores(
    populations: Iterable[Population], thresholds: Sequence[float] = THRESHOLDS, to: float = AREA_TO
) -> list[Score]:
    """fast_p at every threshold and the area to ``to``, per population; nothing for one without trials."""
    scores: list[Score] = []
    for one in populations:
        values = [("fast_p", p, fast_p(one.trials, p)) for p in thresholds] + [("area", to, area(one.trials, to))]
        scores += [one.score(name, parameter, value) for name, parameter, value in values if value is not None]
    return scores


def pooled(populations: Sequence[Population]) -> list[Population]:
    """Populations of several definitions taken together, side by side of the split; every trial counts the same.

    One definition alone has nothing to be pooled with.
    """
    groups: dict[tuple[Split, str, str], list[Population]] = {}
    for item in populations:
        groups.setdefault((item.side, item.what, item.times), []).append(item)
    return [_together(group) for group in groups.values() if len(group) > 1]


def _together(group: Sequence[Population]) -> Population:
    return replace(
        group[0],
        definition=EVERY,
        trials=tuple(trial for item in group for trial in item.trials),
        baseline=tuple(sorted({digest for item in group for digest in item.baseline})),
        invalid=sum(item.invalid for item in group),
    )

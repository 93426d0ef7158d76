"""All scores of one run or one published index, in one order: confirmed first, then traffic, then the screen.

In: what was decided and measured. Out: :class:`Scorecard`. The same for a run that has just ended and for one that is
read from the store; what was not at hand there is absent, never zero.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fib_core.account.projections import roofline_rows
from fib_core.account.scoring import AREA_TO, THRESHOLDS, Score, pooled, speed_scores
from fib_core.account.traffic import Measured, traffic_scores
from fib_core.account.trials import Pair, key_populations, median_times, screen_populations
from schemas.base import Digest
from schemas.decision import Decision
from schemas.evaluation import Evaluation, Status
from schemas.index import DispatchIndex
from schemas.snapshot import Snapshot


@dataclass(frozen=True)
class Scorecard:
    """``confirmed``: keys as they are served. ``traffic``: logged calls. ``screen``: candidates, for ranking only."""

    confirmed: tuple[Score, ...]
    traffic: tuple[Score, ...]
    screen: tuple[Score, ...]
    roofline: tuple[dict[str, Any], ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All scores for tables and JSON; the roofline has rows of its own."""
        return [item.row for item in (*self.confirmed, *self.traffic, *self.screen)]

    def find(self, name: str, parameter: float | None = None, **more: str) -> list[Score]:
        """Scores of this name and parameter, in order; ``more`` asks for other fields."""
        return [
            item
            for item in (*self.confirmed, *self.traffic, *self.screen)
            if (item.name, item.parameter) == (name, parameter)
            and all(getattr(item, field) == value for field, value in more.items())
        ]


@dataclass(frozen=True)
class Evidence:
    """What scores are computed from. ``screened`` and ``not_applicable``: of the screen, where it is at hand."""

    snapshot: Snapshot
    decisions: Sequence[Decision]
    index: DispatchIndex | None
    by: Measured
    bounds_us: Mapping[Digest, float] = field(default_factory=dict)
    """Workload -> its roofline."""
    screened: Sequence[Evaluation] = ()
    not_applicable: Collection[Pair] = ()


def scorecard(given: Evidence, thresholds: Sequence[float] = THRESHOLDS, to: float = AREA_TO) -> Scorecard:
    """Every score that the evidence supports: fast_p at ``thresholds``, its area up to ``to``, traffic, roofline."""
    keys = key_populations(given.snapshot, given.decisions)
    pairs = screen_populations(given.snapshot, given.screened, given.decisions, given.not_applicable)
    index = given.index
    return Scorecard(
        confirmed=tuple(speed_scores([*pooled(keys), *keys], thresholds, to)),
        traffic=tuple(traffic_scores(given.snapshot, index, given.by)) if index else (),
        screen=tuple(speed_scores([*pooled(pairs), *pairs], thresholds, to)),
        roofline=tuple(roofline_rows(given.snapshot, index, given.by, given.bounds_us)) if index else (),
    )


def measured(evaluations: Sequence[Evaluation], source: str) -> Measured:
    """Times of these evaluations under the name of their source."""
    spoiled = {
        (item.job.solution_digest, item.job.workload_digest)
        for item in evaluations
        if item.status is Status.INVALID and item.job.role != "control"
    }
    return Measured(median_times(evaluations), source, frozenset(spoiled))

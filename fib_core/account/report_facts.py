"""What a finished run knows, and what follows from it: scores, cold path, accounts. Each is computed once, when asked.

In: records of a run. Out: :class:`RunFacts`. Knows no page and no terminal.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from fib_core.account.cold import cold_rows
from fib_core.account.coverage import Coverage
from fib_core.account.projections import bounds_of
from fib_core.account.report_rows import Row, status_counts, verdict_counts
from fib_core.account.scorecard import Evidence, Scorecard, measured, scorecard
from fib_core.account.scoring import SCREEN_TIMES
from schemas.base import Digest
from schemas.decision import Decision
from schemas.evaluation import Evaluation
from schemas.index import DispatchIndex
from schemas.snapshot import Snapshot
from schemas.solution import Solution


@dataclass(frozen=True)
class RunFacts:
    """All that a finished run knows; the report reads it and adds nothing."""

    snapshot: Snapshot
    solutions: Mapping[Digest, Solution]
    screen: Sequence[Evaluation]
    decisions: Sequence[Decision]
    profile: str
    channel: str
    index_digest: Digest
    not_applicable: Collection[tuple[Digest, Digest]] = ()
    quarantined_count: int = 0
    read_count: int = 0
    flow_run_id: str | None = None
    mlflow_run_id: str | None = None
    wall_s: float = 0.0
    notes: Mapping[Digest, str] = field(default_factory=dict)
    coverage: Sequence[Coverage] = ()
    index: DispatchIndex | None = None
    not_published: str | None = None

    @cached_property
    def card(self) -> Scorecard:
        """Scores: ratios from confirmed estimates, times of whole calls from the screen."""
        by = measured(self.screen, SCREEN_TIMES)
        bounds_us = bounds_of(self.screen)
        return scorecard(
            Evidence(self.snapshot, self.decisions, self.index, by, bounds_us, self.screen, self.not_applicable)
        )

    @cached_property
    def cold(self) -> list[Row]:
        """The cold path of every solution."""
        return cold_rows(self.screen, self.snapshot, {digest: one.name for digest, one in self.solutions.items()})

    @property
    def accounts(self) -> dict[str, dict[str, int]]:
        """What was read, judged and decided, by what became of it."""
        pairs = status_counts(self.screen) | {"not_applicable": len(self.not_applicable)}
        lines = {"accepted": self.read_count - self.quarantined_count, "quarantined": self.quarantined_count}
        return {"lines": lines, "pairs": pairs, "keys": verdict_counts(self.decisions)}

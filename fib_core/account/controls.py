"""How often nothing was taken for something: the disguised incumbents of a run, and false discoveries over its keys.

In: Decisions. Out: counts and rows for a report. Decides nothing: a decision stands by its own rule.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fib_core.account.scores import discoveries
from schemas.decision import Decision

LEVEL = 0.05
"""Share of false ones among discoveries that the report asks about."""


@dataclass(frozen=True)
class Controls:
    """The incumbent under a false name, over all keys of a run. A sound machine promotes none of them."""

    count: int
    promoted: int
    """Controls that a finalist's place would have won by significance and minimum effect."""
    covering: int
    """Of ``count``: 95 % intervals that contain the truth, which is 1."""
    typical: float | None
    """Median of the larger of ratio and 1 / ratio."""
    widest: float | None


@dataclass(frozen=True)
class Discoveries:
    """Benjamini-Hochberg over the keys whose finalists were tested; their Holm-adjusted p-values go in."""

    tested: int
    found: int
    """Keys whose adjusted p is at most :data:`LEVEL`."""
    promoted: int
    worst: float | None
    """The largest adjusted p of a promotion: the share of false promotions to expect is not above it."""


def controls_of(decisions: Sequence[Decision]) -> Controls:
    """Counts over every decision that has a control, INVALID ones included."""
    found = [(item, item.control) for item in decisions if item.control is not None]
    off = [math.exp(abs(math.log(control.ratio))) for _, control in found]
    return Controls(
        count=len(found),
        promoted=sum(c.p_holm < item.alpha and c.ratio >= 1 + item.min_effect for item, c in found),
        covering=sum(control.interval[0] <= 1 <= control.interval[1] for _, control in found),
        typical=median(off) if off else None,
        widest=max(off, default=None),
    )


def discoveries_of(decisions: Sequence[Decision]) -> Discoveries:
    """Each key by its best finalist; a promoted one by who was promoted. INVALID keys are no tests."""
    tested = [item for item in decisions if item.estimates and item.verdict != "invalid"]
    adjusted = discoveries([_p(item) for item in tested])
    won = [p for item, p in zip(tested, adjusted, strict=True) if item.verdict == "promoted"]
    return Discoveries(len(tested), sum(p <= LEVEL for p in adjusted), len(won), max(won, default=None))


def control_rows(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """One row per key with a control, the widest estimate first."""
    rows = [
        {
            "definition": item.definition, "key": item.key, "ratio": control.ratio, "interval": list(control.interval),
            "p": control.p_holm, "min_effect": item.min_effect, "rounds": item.rounds, "verdict": item.verdict,
        }
        for item in decisions
        if (control := item.control) is not None
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -abs(math.log(row["ratio"])))


def _p(decision: Decision) -> float:
    mine = [item.p_holm for item in decision.estimates if item.solution_digest == decision.solution_digest]
    return min(mine or [item.p_holm for item in decision.estimates])

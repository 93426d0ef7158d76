"""Does a published gain hold when it is measured again? In: both estimates. Out: a KeyAgain, and shares over many.

Two independent estimates of one number differ by less than 1.96 sqrt(se^2 + se^2) in 95 of 100 cases. Pure; knows no
store and no device. What the machine spoiled agrees with nothing and contradicts nothing.
"""

import math
from collections.abc import Sequence
from typing import Any

from fib_core.decision.stats import hodges_lehmann, interval, standard_error
from schemas.base import Digest
from schemas.remeasurement import KeyAgain

Z_95 = 1.959964
AGREEMENT_MIN = 0.90
"""Share of promoted keys that have to agree."""


def again(published: KeyAgain, log_ratios: Sequence[float], evaluations: Sequence[Digest]) -> KeyAgain:
    """``published`` completed by new rounds: ``log_ratios`` = log(incumbent / winner) of each complete round."""
    logs = tuple(log_ratios)
    if len(logs) < 2:
        return published.model_copy(update={"causes": (*published.causes, f"{len(logs)} complete rounds")})
    low, high = interval(logs)
    centre, error = hodges_lehmann(logs), standard_error(logs)
    difference = abs(centre - math.log(published.published_ratio))
    allowed = Z_95 * math.hypot(error, published.published_error)
    figures = {
        "rounds": len(logs), "ratio": math.exp(centre), "standard_error": error, "difference": difference,
        "interval": (math.exp(low), math.exp(high)) if math.isfinite(low) else None,
        "allowed": allowed, "agrees": difference <= allowed, "reverses": math.isfinite(high) and high < 0,
        "evaluations": tuple(evaluations),
    }  # fmt: skip
    return published.model_copy(update=figures)


def spoiled(published: KeyAgain, causes: Sequence[str]) -> KeyAgain:
    """The machine was not fit: nothing to compare."""
    return published.model_copy(update={"causes": tuple(causes)})


def shares(keys: Sequence[KeyAgain]) -> dict[str, Any]:
    """Counts that add up, and the verdict: at least nine of ten agree, none reverses; None if nothing was compared."""
    compared = [item for item in keys if item.agrees is not None]
    agreeing, reversing = sum(bool(item.agrees) for item in compared), sum(item.reverses for item in compared)
    share = agreeing / len(compared) if compared else None
    return {
        "promoted": len(keys), "compared": len(compared), "not_compared": len(keys) - len(compared),
        "agreeing": agreeing, "disagreeing": len(compared) - agreeing, "reversing": reversing,
        "agreement": share, "needed": AGREEMENT_MIN,
        "holds": None if share is None else share >= AGREEMENT_MIN and not reversing,
    }  # fmt: skip

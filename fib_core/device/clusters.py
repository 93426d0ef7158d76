"""Are the few mismatches that a low-precision output may have scattered, or do they fill rows or columns?

In: a boolean tensor of mismatches, the rule. Out: a sentence, or None. A line (row or column) is condemned when more
than ``cluster_ratio_max`` of it is wrong and scattered errors at the allowed rate would not do that to any of the lines
once in a million outputs. Lines too short for that are condemned together, when too many are wrong by half or whole.
"""

import math
from typing import Any

from schemas.numerics import OutputRule

_CHANCE = 2e-7  # per direction and kind of test, at the allowed mismatch rate; four of them stay below 1e-6


def cluster(wrong: Any, rule: OutputRule) -> str | None:
    """Where mismatches cluster. Rows are along the last axis, columns are along all others."""
    if wrong.dim() == 0 or wrong.numel() == 0:
        return None
    matrix = wrong.reshape(-1, wrong.shape[-1])
    for axis, name in ((1, "row"), (0, "column")):
        found = _lines(matrix.sum(dim=axis), matrix.shape[axis], name, rule)
        if found is not None:
            return found
    return None


def _lines(counts: Any, length: int, name: str, rule: OutputRule) -> str | None:
    lines, worst, rate = counts.numel(), int(counts.max()), 1 - rule.matched_ratio_min
    if length < 2 or worst == 0:
        return None
    limit = line_limit(length, lines, rate, rule.cluster_ratio_max)
    if worst >= limit:
        return f"{worst / length:.2f} of the elements of one {name} are wrong"
    if limit <= length:
        return None
    for least in sorted({max(2, math.ceil(length / 2)), length}):
        bad = int((counts >= least).sum())
        if bad and _upper_tail(bad, lines, _upper_tail(least, length, rate)) <= _CHANCE / 2:
            return f"{bad} of {lines} {name}s have {least} or more of their {length} elements wrong"
    return None


def line_limit(length: int, lines: int, rate: float, ratio_max: float) -> int:
    """Fewest mismatches that condemn one line; ``length + 1`` where no count can."""
    count = math.floor(ratio_max * length) + 1
    while count <= length and lines * _upper_tail(count, length, rate) > _CHANCE:
        count += 1
    return count


def _upper_tail(count: int, trials: int, chance: float) -> float:
    """P(Binomial(trials, chance) >= count)."""
    from scipy.special import bdtrc

    return float(bdtrc(count - 1, trials, chance)) if count > 0 else 1.0

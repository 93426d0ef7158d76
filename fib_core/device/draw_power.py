"""How many draws a filtered row needs, and what a number of draws is worth.

In: a filtered row, a level. Out: power against any total variation distance of 0.05, draws that attain 0.999. Pure.

The distortion assumed is the one that the view ``tokens`` sees worst: it shifts mass up and down token by token,
without regard to the secret pooling, in proportion to the mass of the token's cell, at most the token's own
probability. Its expected noncentrality is ``n * sum d^2 / cell mass``. What moves mass between layers of probability,
blocks of ids or lanes is seen earlier by the other views.
"""

from dataclasses import dataclass
from typing import Any

import torch

from fib_core.device.chi_square import EXPECTATION_MIN, critical_value, power
from fib_core.device.draw_cells import COARSE_CELLS, tail_cell
from fib_core.device.support import Support

TVD = 0.05
POWER = 0.999
_DRAWS_MAX = 1 << 30


@dataclass(frozen=True)
class _Plan:
    """The view ``tokens`` of a row at a number of draws, without drawing it."""

    cells: int
    reciprocals: float
    noncentrality: float


def distinct(chosen: Support) -> Any:
    """Probabilities in falling order, the tokens among which the sampler may choose counted as one."""
    if not chosen.tied:
        return chosen.weights
    joined = torch.cat([chosen.weights[: -chosen.tied], chosen.weights[-chosen.tied :].sum()[None]])
    return joined.sort(descending=True).values


def power_at(tokens: Any, draws: int, alpha: float, tvd: float = TVD) -> float:
    """Power of the view ``tokens`` at level ``alpha``; ``tokens`` as :func:`distinct` returns them.

    A single token: whatever differs is outside the support, and the mask sees the first such draw.
    """
    if len(tokens) < 2:
        return 1 - (1 - tvd) ** draws
    if draws < 2 * EXPECTATION_MIN:
        return 0.0
    plan = _plan(tokens, draws, tvd)
    if plan.cells < 2:
        return 0.0
    critical = critical_value(plan.cells, draws, plan.reciprocals, alpha)
    return power(critical, plan.cells - 1, plan.noncentrality)


def coarse_power_at(tokens: Any, draws: int, alpha: float, tvd: float = TVD) -> float:
    """Power of a view of sixteen cells against ``tvd`` between its cells: sum d^2 / p is then at least (2 tvd)^2."""
    if len(tokens) < 2:
        return power_at(tokens, draws, alpha, tvd)
    cells = min(len(tokens), COARSE_CELLS, int(draws / EXPECTATION_MIN))
    if cells < 2:
        return 0.0
    critical = critical_value(cells, draws, cells * cells / draws, alpha)
    return power(critical, cells - 1, draws * (2 * tvd) ** 2)


def draws_for(tokens: Any, alpha: float, wanted: float = POWER, tvd: float = TVD) -> int:
    """Fewest draws, to one part in 256, with the wanted power; 0 where there is only one token to draw."""
    if len(tokens) < 2:
        return 0
    high = 256
    while power_at(tokens, high, alpha, tvd) < wanted and high < _DRAWS_MAX:
        high *= 2
    low = high // 2
    while high - low > max(1, high // 256):
        middle = (low + high) // 2
        low, high = (low, middle) if power_at(tokens, middle, alpha, tvd) >= wanted else (middle, high)
    return high


def _plan(tokens: Any, draws: int, tvd: float) -> _Plan:
    least = EXPECTATION_MIN / draws
    singles = int((tokens >= least).sum())
    pooled = tail_cell(tokens[singles:], draws)
    tail = float(tokens[singles:].sum())
    tails = max(int(tail / pooled), 1) if tail > 0 else 0
    reciprocals = float((1 / tokens[:singles]).sum()) / draws + (tails * tails / (draws * tail) if tails else 0.0)
    cell = torch.where(tokens >= least, tokens, pooled)
    return _Plan(singles + tails, reciprocals, draws * _least_square(tokens, cell, 2 * tvd))


def _least_square(tokens: Any, cell: Any, moved: float) -> float:
    """Smallest ``sum d^2 / cell`` with ``sum d = moved`` and ``0 <= d <= tokens``: d = min(tokens, c * cell)."""
    ratio = tokens / cell  # falling: 1 for tokens that are cells themselves
    cells, after = cell.cumsum(0), (1 - tokens.cumsum(0)).clamp(min=0)
    reached = int((after + ratio * cells >= moved).sum())
    last = max(reached - 1, 0)
    level = (moved - float(after[last])) / float(cells[last])
    d = torch.minimum(tokens, level * cell)
    return float((d * d / cell).sum())

"""Pearson's chi-square on counts, calibrated where expectations are as small as ten.

In: observed and expected counts per cell. Out: p-values of both tails, critical values, power. Pure. The statistic's
own mean, variance (Haldane 1937) and skewness (that of independent Poisson cells) enter a Pearson III tail: with large
expectations it is the chi-square tail itself.
With fewer than ten degrees of freedom one rare cell decides and no smooth tail fits: there the likelihood ratio is
held against the bound of Agrawal (2020, "Finite-sample concentration of the multinomial in relative entropy").
"""

import math
from dataclasses import dataclass
from typing import Any

EXPECTATION_MIN = 10.0
FREEDOM_MIN = 10  # below: the bound
EVEN_FREEDOM_MIN = 15  # fewer cells may well come out even: nothing to report


@dataclass(frozen=True)
class Tail:
    """Pearson III with the statistic's first three cumulants."""

    mean: float
    deviation: float
    shape: float

    @classmethod
    def of(cls, cells: int, draws: float, reciprocals: float) -> "Tail":
        """``reciprocals`` is the sum of 1 / expectation over the cells."""
        variance = 2 * (cells - 1) + reciprocals - (cells * cells + 2 * cells - 2) / draws
        third = 8 * (cells - 1) + 22 * reciprocals
        return cls(cells - 1, math.sqrt(variance), 4 * variance**3 / third**2)

    def above(self, statistic: float) -> float:
        """P(statistic or more)."""
        from scipy.special import gammaincc

        return float(gammaincc(self.shape, max(self._standard(statistic), 0.0)))

    def below(self, statistic: float) -> float:
        """P(statistic or less)."""
        from scipy.special import gammainc

        return float(gammainc(self.shape, max(self._standard(statistic), 0.0)))

    def critical(self, alpha: float) -> float:
        """Statistic that is exceeded with probability ``alpha``."""
        from scipy.special import gammainccinv

        inverse = float(gammainccinv(self.shape, alpha))
        return self.mean + self.deviation * (inverse - self.shape) / math.sqrt(self.shape)

    def _standard(self, statistic: float) -> float:
        return self.shape + math.sqrt(self.shape) * (statistic - self.mean) / self.deviation


def p_values(observed: Any, wanted: Any) -> tuple[float, float, float]:
    """Pearson's statistic, P(as uneven or more), P(as even or more; 1 with too few cells). fp64 tensors [cells]."""
    statistic = float(((observed - wanted).square() / wanted).sum())
    cells = len(wanted)
    if cells <= FREEDOM_MIN:
        return statistic, _bound(observed, wanted), 1.0
    tail = Tail.of(cells, float(wanted.sum()), float((1 / wanted).sum()))
    even = tail.below(statistic) if cells > EVEN_FREEDOM_MIN else 1.0
    return statistic, tail.above(statistic), even


def _bound(observed: Any, wanted: Any) -> float:
    """P(n KL >= t) <= exp(-t) (e t / f)^f for t > f degrees of freedom."""
    freedom = len(wanted) - 1
    divergence = float((observed * (observed.clamp(min=1) / wanted).log()).sum())
    if freedom < 1 or divergence <= freedom:
        return 1.0
    return min(1.0, math.exp(freedom * (1 + math.log(divergence / freedom)) - divergence))


def critical_value(cells: int, draws: float, reciprocals: float, alpha: float) -> float:
    """What Pearson's statistic must exceed (for few cells: about what the bound asks of it)."""
    if cells > FREEDOM_MIN:
        return Tail.of(cells, draws, reciprocals).critical(alpha)
    freedom = max(cells - 1, 1)
    low, high = float(freedom), 1e3
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        bound = freedom * (1 + math.log(middle / freedom)) - middle
        low, high = (middle, high) if bound > math.log(alpha) else (low, middle)
    return 2 * high


def power(critical: float, freedom: int, noncentrality: float) -> float:
    """P(a noncentral chi-square exceeds ``critical``); Sankaran's normal form, right to a percent of the miss rate."""
    from scipy.special import chndtr, ndtr

    if freedom < 200:
        return 1 - float(chndtr(critical, freedom, noncentrality))
    mean, both = freedom + noncentrality, freedom + 2 * noncentrality
    h = 1 - 2 * mean * (freedom + 3 * noncentrality) / (3 * both * both)
    p, m = both / (mean * mean), (h - 1) * (1 - 3 * h)
    shift = 1 + h * p * (h - 1 - 0.5 * (2 - h) * m * p)
    return float(ndtr(-((critical / mean) ** h - shift) / (h * math.sqrt(2 * p) * (1 + 0.5 * m * p))))

"""Estimates, intervals and exact tests over paired rounds. Pure; knows nothing of kernels.

Everything is for ONE sample of paired differences (log-ratios), assumed symmetric about their centre: the signed-rank
family (Wilcoxon 1945; Hodges & Lehmann 1963; Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, ch. 3).
"""

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import combinations_with_replacement
from statistics import NormalDist, median


def signed_rank_p(differences: Sequence[float]) -> float:
    """Exact one-sided p of "the centre is <= 0" against "> 0".

    Zeros stay in, ranked lowest and counted for the null (Pratt's ranking, worst sign): a tie with the incumbent never
    helps a candidate. Ties in size get mid-ranks; the null distribution is enumerated for exactly those ranks.
    """
    if not differences:
        return 1.0
    ranks = _double_ranks([abs(value) for value in differences])
    positive = sum(rank for rank, value in zip(ranks, differences, strict=True) if value > 0)
    counts = _sums(tuple(sorted(ranks)))
    return float(sum(counts[positive:]) / 2 ** len(differences))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Median of all Walsh averages (each pair once, each value with itself)."""
    return median(walsh_averages(differences))


def walsh_averages(differences: Sequence[float]) -> tuple[float, ...]:
    """Sorted means of all pairs i <= j: n(n+1)/2 numbers."""
    return _walsh_averages(tuple(differences))


@lru_cache(maxsize=32)  # estimate, interval and error of one sample ask one after the other
def _walsh_averages(differences: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(sorted((one + other) / 2 for one, other in combinations_with_replacement(differences, 2)))


def interval(differences: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided interval by inverting the exact signed-rank test; infinite where too few rounds allow no such level."""
    tail = _trimmed(len(differences), (1 - confidence) / 2)
    if tail is None:
        return -math.inf, math.inf
    averages = walsh_averages(differences)
    return averages[tail], averages[-1 - tail]


def lower_bound(differences: Sequence[float], confidence: float = 0.95) -> float:
    """One-sided lower bound by inverting the exact signed-rank test; -inf where so few rounds support no such level."""
    tail = _trimmed(len(differences), 1 - confidence)
    return -math.inf if tail is None else walsh_averages(differences)[tail]


def standard_error(differences: Sequence[float], confidence: float = 0.95) -> float:
    """Standard error of the Hodges-Lehmann estimate: interval width / 2z, z of the level that the interval attains.

    (Lehmann 1963.) With too few rounds for the interval, the classical s / sqrt(n); infinite for a single round.
    """
    count = len(differences)
    tail = _trimmed(count, (1 - confidence) / 2)
    if tail is None:
        return _classical_error(differences)
    averages = walsh_averages(differences)
    attained = _tail_probability(count, tail)
    return (averages[-1 - tail] - averages[tail]) / (2 * NormalDist().inv_cdf(1 - attained))


def _classical_error(differences: Sequence[float]) -> float:
    count = len(differences)
    if count < 2:
        return math.inf
    mean = math.fsum(differences) / count
    return math.sqrt(math.fsum((value - mean) ** 2 for value in differences) / (count - 1) / count)


def _double_ranks(sizes: Sequence[float]) -> list[int]:
    """Twice the mid-ranks, so that ties stay integers."""
    order = sorted(sizes)
    first = {size: order.index(size) for size in set(sizes)}
    many = {size: order.count(size) for size in set(sizes)}
    return [2 * first[size] + many[size] + 1 for size in sizes]


@cache
def _sums(ranks: tuple[int, ...]) -> list[int]:
    """How many of the 2^n sign patterns give each sum of positive (doubled) ranks."""
    counts = [1] + [0] * sum(ranks)
    for rank in ranks:
        for total in range(len(counts) - 1, rank - 1, -1):
            counts[total] += counts[total - rank]
    return counts


@cache
def _tail_probability(count: int, tail: int) -> float:
    """P(T <= tail) of the untied signed-rank statistic."""
    counts = _sums(tuple(2 * rank for rank in range(1, count + 1)))
    return float(sum(counts[: 2 * tail + 1]) / 2**count)


def _trimmed(count: int, level: float) -> int | None:
    """Walsh averages to drop at one end so that the error there is <= ``level``; None if even none is too many."""
    if count == 0 or _tail_probability(count, 0) > level:
        return None
    tail = 0
    while _tail_probability(count, tail + 1) <= level:
        tail += 1
    return tail

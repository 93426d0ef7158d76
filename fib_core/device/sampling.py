"""Samplers: is every draw inside the top-k / top-p support, and are many draws independent draws of the filtered row?

In: probabilities, filters, draws. Out: findings, the power that the number of draws attained, the number needed. Pure;
fp64 throughout; no Python loop over draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fib_core.device import draw_power
from fib_core.device.chi_square import p_values
from fib_core.device.compare import Finding
from fib_core.device.draw_cells import VIEWS, views
from fib_core.device.support import MASK_SLACK, Rows, Support, boundaries, support, supports, thresholds

__all__ = ["FALSE_REJECTION", "MASK_SLACK", "DrawTest", "Rows", "boundaries", "by_liveliness", "distribution_test",
           "liveliest_row", "mask_finding", "needed_draws", "repeated_stream", "thresholds"]  # fmt: skip

FALSE_REJECTION = 1e-6  # of an exact sampler, by all tests of one evaluation together
# How the level is shared out. The approximate tail may be off by a factor of some ten at such levels, where many rare
# cells meet few common ones; the binomial tail of repeats is exact.
_UNEVEN, _EVEN, _REPEATED = 0.08, 0.02, 0.1


@dataclass(frozen=True)
class DrawTest:
    """Outcome of the tests on one row.

    ``power`` is that against any total variation distance of 0.05, ``coarse_power`` that against 0.05 of the mass moved
    between layers of probability, blocks of ids or lanes.
    """

    finding: Finding | None
    draws: int
    power: float
    coarse_power: float = 0.0


def mask_finding(rows: Rows, limits: Any, draws: Any) -> Finding | None:
    """First draw outside the support, if any. ``draws`` is [calls, batch]; ``limits`` comes from :func:`thresholds`."""
    vocab = rows.probs.shape[1]
    known = (draws >= 0) & (draws < vocab)
    picked = rows.probs.gather(1, draws.clamp(0, vocab - 1).T.to(torch.int64)).T
    outside = ~(known & (picked >= limits) & (picked > 0))
    if not bool(outside.any()):
        return None
    call, row = (int(index) for index in outside.nonzero()[0])
    token, count = int(draws[call, row]), int(outside.sum())
    return Finding("mask", f"{count} draws outside the support, the first token {token} in row {row}")


def by_liveliness(rows: Rows) -> list[int]:
    """Rows by the largest probability of their filtered distribution, smallest first: the ones that tell most."""
    limits = thresholds(rows, 0.0)
    kept = torch.where(rows.probs >= limits[:, None], rows.probs, 0.0)
    return [int(row) for row in (kept.max(dim=1).values / kept.sum(dim=1)).argsort(stable=True)]


def liveliest_row(rows: Rows) -> int:
    """The first of :func:`by_liveliness`."""
    return by_liveliness(rows)[0]


def needed_draws(rows: Rows, row: int, alpha: float = FALSE_REJECTION) -> int:
    """Draws of one row that tell any total variation distance of 0.05 with power 0.999; 0 for a single token."""
    return draw_power.draws_for(draw_power.distinct(support(rows, row)), _view_level(alpha))


def distribution_test(
    rows: Rows, row: int, draws: Any, generator: torch.Generator, alpha: float = FALSE_REJECTION
) -> DrawTest:
    """Are ``draws`` [calls, batch], all from one row, each call under its own seed, independent draws of that row?

    Several such blocks come as a list. An exact sampler is found at fault with probability below ``alpha``.
    ``generator`` is secret: it pools tokens.
    """
    blocks = [part.to(torch.int64) for part in ([draws] if isinstance(draws, torch.Tensor) else draws)]
    every = _flat(blocks)
    exact, *rounded = supports(rows, row, len(every))
    tokens, level = draw_power.distinct(exact), _view_level(alpha)
    attained = draw_power.power_at(tokens, len(every), level)
    coarse = draw_power.coarse_power_at(tokens, len(every), level)
    finding = _repeats(exact, blocks, alpha * _REPEATED)
    if finding is None and len(every):
        counts = torch.bincount(every, minlength=exact.vocab)
        # A token that rounding may put on either side of top-p's boundary: right on one side is right.
        for chosen in (exact, *rounded):
            finding = _pooled_finding(chosen, counts, len(every), generator, alpha)
            if finding is None:
                break
    return DrawTest(finding, len(every), attained, coarse)


def repeated_stream(
    rows: Rows, row: int, first: Any, second: Any, alpha: float = FALSE_REJECTION
) -> Finding | None:
    """Draws of one row in two fresh processes under different seeds agree more than chance: the seed is ignored."""
    chosen = support(rows, row)
    pair = _canonical(chosen, first.reshape(-1)), _canonical(chosen, second.reshape(-1))
    size = min(len(pair[0]), len(pair[1]))
    words = "two processes under different seeds drew the same tokens"
    return _agreement(chosen, pair[0][:size], pair[1][:size], words, alpha * _REPEATED)


def _view_level(alpha: float) -> float:
    return alpha * _UNEVEN / len(VIEWS)


def _pooled_finding(
    chosen: Support, counts: Any, draws: int, generator: torch.Generator, alpha: float
) -> Finding | None:
    seen = counts[chosen.ids].double()
    seen[-1] += draws - seen.sum()  # what rounding at the boundary let in
    for name, cells in views(chosen, draws, generator).items():
        observed = torch.bincount(cells.of, seen)
        statistic, uneven, even = p_values(observed, cells.masses * draws)
        said = f"{draws} draws in {len(observed)} cells ({name}): chi-square {statistic:.1f}"
        if uneven < _view_level(alpha):
            return Finding("distribution", f"the draws do not follow the filtered row: {said}, p {uneven:.1e}")
        if even < alpha * _EVEN / len(VIEWS):
            return Finding("distribution", f"the draws are too even to be random: {said}, p {even:.1e}")
    return None


def _flat(parts: Sequence[Any]) -> Any:
    return torch.cat([part.reshape(-1) for part in parts]) if parts else torch.zeros(0, dtype=torch.int64)


def _repeats(chosen: Support, blocks: Sequence[Any], alpha: float) -> Finding | None:
    """Draws that repeat from call to call or row to row: a fixed seed, one random number for all rows, a replay."""
    for words, one, other in _pairings([_canonical(chosen, draws) for draws in blocks]):
        finding = _agreement(chosen, one, other, words, alpha / 3)
        if finding is not None:
            return finding
    return None


def _pairings(blocks: Sequence[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Disjoint pairs of draws of one block, so that agreements are independent."""
    calls = sum(len(draws) for draws in blocks)
    words = f"{calls} calls under {calls} different seeds drew the same tokens"
    yield words, _flat([d[0 : len(d) // 2 * 2 : 2] for d in blocks]), _flat([d[1::2] for d in blocks])
    halves = [len(draws) // 2 for draws in blocks]
    one = _flat([d[:half] for d, half in zip(blocks, halves, strict=True)])
    other = _flat([d[half : 2 * half] for d, half in zip(blocks, halves, strict=True)])
    yield "the second half of the calls repeats the first", one, other
    one, other = (_flat([d[:, side : d.shape[1] // 2 * 2 : 2] for d in blocks]) for side in (0, 1))
    yield "rows of one call drew the same tokens", one, other


def _canonical(chosen: Support, draws: Any) -> Any:
    """Tokens among which the sampler may choose, as one."""
    if not chosen.tied:
        return draws
    named = torch.arange(chosen.vocab)
    named[chosen.ids[-chosen.tied :]] = chosen.ids[-1]
    return named[draws]


def _agreement(chosen: Support, one: Any, other: Any, words: str, alpha: float) -> Finding | None:
    """Exact binomial tail of the number of equal pairs."""
    from scipy.special import bdtrc

    pairs, equal = one.numel(), int(torch.count_nonzero(one == other))
    chance = min(float(draw_power.distinct(chosen).square().sum()), 1.0)
    if not equal or chance >= 1 or float(bdtrc(equal - 1, pairs, chance)) >= alpha:
        return None
    return Finding("distribution", f"{words}: {equal} of {pairs} pairs are equal, {pairs * chance:.1f} expected")

"""Samplers: is every draw inside the top-k / top-p support, and are many draws distributed as the filtered row?

In: probabilities, filters, draws. Out: findings, and the power that the number of draws attained. Pure; fp64
throughout. Top-k keeps ``0 < k < vocab`` tokens, then top-p keeps the shortest prefix whose mass exceeds ``p`` of
what is left.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from fib_core.device.compare import Finding
from fib_core.errors import UnsupportedInput

# Ten times below the contract's 1e-6: the chi-square tail is slightly liberal at expectations near 10.
_FALSE_REJECTION = 1e-7
_IDENTICAL_PROBABILITY = 1e-7
_EXPECTATION_MIN = 10.0
_STRATA = 8  # times two: few enough cells for the power, enough to see where mass went
_TVD = 0.05
# The mask grants what an fp32 prefix sum over a large vocabulary can be off by; the distribution test grants nothing.
MASK_SLACK = 1e-5


@dataclass(frozen=True)
class Rows:
    """Probabilities [batch, vocab] in fp64 with their filters [batch], None where the definition has none."""

    probs: Any
    top_k: Any | None
    top_p: Any | None

    @classmethod
    def of(cls, inputs: dict[str, Any]) -> "Rows":
        """From a sampling definition's inputs; only the tensors probs, top_k and top_p are understood."""
        known = ("probs", "top_k", "top_p")
        unknown = [name for name, value in inputs.items() if name not in known or not isinstance(value, torch.Tensor)]
        if unknown or "probs" not in inputs:
            raise UnsupportedInput(f"a sampling definition takes probs, top_k, top_p; cannot read {', '.join(unknown)}")
        return cls(inputs["probs"].to(torch.float64), inputs.get("top_k"), inputs.get("top_p"))


@dataclass(frozen=True)
class DrawTest:
    """Outcome of the distribution test on one row."""

    finding: Finding | None
    draws: int
    power: float


def thresholds(rows: Rows, slack: float) -> Any:
    """Smallest legal probability of each row, [batch]; ties with it are legal."""
    batch, vocab = rows.probs.shape
    ordered = rows.probs.sort(dim=1, descending=True).values
    kept = torch.full((batch,), vocab)
    if rows.top_k is not None:
        asked = rows.top_k.to(torch.int64).reshape(-1)
        kept = torch.where((asked > 0) & (asked < vocab), asked, kept)
    if rows.top_p is not None:
        mass = ordered.cumsum(dim=1)
        total = mass.gather(1, kept[:, None] - 1)
        inside = mass / total <= rows.top_p.to(torch.float64).reshape(-1, 1) + slack
        inside &= rows.top_p.reshape(-1, 1) > 0
        kept = torch.minimum(kept, inside.sum(dim=1) + 1)
    return ordered.gather(1, kept[:, None] - 1)[:, 0]


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


def liveliest_row(rows: Rows) -> int:
    """The row whose filtered distribution has the smallest largest probability: the one that tells most."""
    limits = thresholds(rows, 0.0)
    kept = torch.where(rows.probs >= limits[:, None], rows.probs, 0.0)
    return int((kept.max(dim=1).values / kept.sum(dim=1)).argmin())


def distribution_test(rows: Rows, row: int, draws: Any, generator: torch.Generator) -> DrawTest:
    """Pearson's chi-square over cells pooled from one row's tokens; ``draws`` is [calls, batch], all from that row."""
    one = Rows(rows.probs[row : row + 1], *(None if f is None else f[row : row + 1] for f in (rows.top_k, rows.top_p)))
    weights, limit = _filtered(one)
    tied = float(weights[one.probs[0] == limit].sum())
    identical = _identical(max(float(weights.max()), tied), draws)
    if identical is not None:
        return DrawTest(identical, draws.numel(), 1.0)
    cells, masses = _cells(one.probs[0], weights, limit, draws.numel(), generator)
    if len(masses) < 2:
        return DrawTest(None, draws.numel(), 0.0)
    observed = torch.bincount(cells[draws.reshape(-1)], minlength=len(masses)).double()
    return _chi_square(observed, masses * draws.numel())


def _filtered(row: Rows) -> tuple[Any, float]:
    """The exact filtered distribution; tokens tied with the boundary share what the boundary leaves to them."""
    limit = float(thresholds(row, 0.0)[0])
    probs = row.probs[0]
    if limit == float(probs.max()):
        weights = (probs == limit).double()
        return weights / weights.sum(), limit
    weights = torch.where(probs >= limit, probs, 0.0)
    tied, room = int((probs == limit).sum()), _room(row, limit)
    weights = torch.where(probs == limit, limit * room / tied, weights)
    return weights / weights.sum(), limit


def _room(row: Rows, limit: float) -> int:
    """How many of the tokens tied with the boundary the filter keeps."""
    probs, vocab = row.probs[0], row.probs.shape[1]
    above, tied = int((probs > limit).sum()), int((probs == limit).sum())
    asked = int(row.top_k[0]) if row.top_k is not None else 0
    kept = asked if 0 < asked < vocab else vocab
    if row.top_p is not None and float(row.top_p[0]) < 1:
        ordered = probs.sort(descending=True).values
        mass = ordered.cumsum(0) / ordered[:kept].sum()
        kept = min(kept, int((mass <= float(row.top_p[0])).sum()) + 1)
    return max(1, min(tied, kept - above))


def _identical(likeliest: float, draws: Any) -> Finding | None:
    """Every call alike under different seeds, where that is next to impossible; boundary ties count as one token."""
    calls, batch = draws.shape
    if calls < 2 or not bool((draws == draws[0]).all()):
        return None
    log_chance = (calls - 1) * batch * math.log(likeliest)
    if log_chance > math.log(_IDENTICAL_PROBABILITY):
        return None
    return Finding("distribution", f"{calls} calls under {calls} different seeds drew the same tokens")


def _cells(probs: Any, weights: Any, limit: float, draws: int, generator: torch.Generator) -> tuple[Any, Any]:
    """Cell of every token, mass of every cell: strata of probability, each halved by a secret coin per token."""
    order = weights.sort(descending=True).indices
    middle = weights[order].cumsum(0) - weights[order] / 2
    stratum = torch.empty_like(order)
    stratum[order] = (middle * _STRATA).long().clamp(0, _STRATA - 1)
    coin = torch.randint(0, 2, stratum.shape, generator=generator)
    cell = stratum * 2 + coin
    # Which of the tied tokens is kept is the sampler's choice: they must not be told apart.
    cell = torch.where(probs == limit, int(stratum[probs == limit].min()) * 2, cell)
    return _pooled(cell, weights, draws)


def _pooled(cell: Any, weights: Any, draws: int) -> tuple[Any, Any]:
    masses = torch.zeros(2 * _STRATA, dtype=torch.float64).index_add_(0, cell, weights)
    target, renamed, pooled = _EXPECTATION_MIN / max(draws, 1), [], [0.0]
    for mass in masses.tolist():
        if pooled[-1] >= target and mass > 0:
            pooled.append(0.0)
        pooled[-1] += mass
        renamed.append(len(pooled) - 1)
    if len(pooled) > 1 and pooled[-1] < target:
        pooled[-2] += pooled.pop()
        renamed = [min(name, len(pooled) - 1) for name in renamed]
    return torch.tensor(renamed)[cell], torch.tensor(pooled, dtype=torch.float64)


def _chi_square(observed: Any, wanted: Any) -> DrawTest:
    from scipy.special import chdtrc, chdtri, chndtr

    freedom, draws = len(wanted) - 1, int(observed.sum())
    statistic = float(((observed - wanted).square() / wanted).sum())
    critical = float(chdtri(freedom, _FALSE_REJECTION))
    power = 1 - float(chndtr(critical, freedom, draws * (2 * _TVD) ** 2))  # sum d^2/p >= (2 TVD)^2
    finding = None
    if statistic > critical:
        chance = float(chdtrc(freedom, statistic))
        reason = f"{draws} draws do not follow the filtered row: chi-square {statistic:.1f}, p {chance:.1e}"
        finding = Finding("distribution", reason)
    return DrawTest(finding, draws, power)

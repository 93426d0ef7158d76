"""Where draws stand among the tokens of their own rows: for an exact sampler uniformly in [0, 1], whatever the rows.

In: rows with their kept mass, one draw of each, secret noise. Out: standings; a finding on many of them. Pure. This is
how the calls that are timed are judged, where no row comes twice: a sampler that is exact only where it sees a
distribution test is greedy, uniform or seeded by itself everywhere else.
"""

import math
from typing import Any

import torch

from fib_core.device.compare import Finding
from fib_core.device.sampling import FALSE_REJECTION
from fib_core.device.support import Rows

LEVEL = FALSE_REJECTION / 10
_ROWS_MAX = 64  # of one call: each costs a pass over the vocabulary


def standings(rows: Rows, masses: Any, draws: Any, generator: torch.Generator) -> Any:
    """Of ``draws`` [batch], at most 64 of them: the mass of all likelier tokens, and a random share of its own."""
    chosen = torch.randperm(len(draws), generator=generator)[:_ROWS_MAX]
    probs, masses = rows.probs[chosen], masses[chosen]
    picked = probs.gather(1, draws[chosen, None].to(torch.int64))
    above = torch.where(probs > picked, probs, 0.0).sum(1).minimum(masses)
    same = ((probs == picked).sum(1) * picked[:, 0]).minimum(masses - above)
    return (above + torch.rand(len(chosen), dtype=torch.float64, generator=generator) * same) / masses


def finding_on(values: Any, alpha: float = LEVEL) -> Finding | None:
    """Kolmogorov's distance to the uniform distribution, held against Massart's bound: exact for any number."""
    count = len(values)
    if not count:
        return None
    steps = torch.arange(count + 1, dtype=torch.float64) / count
    ordered = values.sort().values
    distance = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    bound = 2 * math.exp(-2 * count * distance**2)
    if bound >= alpha:
        return None
    said = f"distance {distance:.3f}, p below {bound:.1e}"
    return Finding("distribution", f"{count} draws of ordinary calls do not follow their rows: {said}")

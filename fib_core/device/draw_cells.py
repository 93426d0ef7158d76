"""Cells for the chi-square of a sampler's draws: four ways of pooling tokens, each sees what the others blur.

In: a filtered row, the number of draws, a secret generator. Out: :class:`Cells`. Pure. ``tokens``: every token with an
expectation of ten or more is its own cell, rarer ones are pooled in secret. ``strata``: layers of probability,
halved in secret: temperature, missing filters, tails. ``blocks``: neighbouring ids: a tile that was not read.
``lanes``: ids modulo sixteen: a lane that was lost.
"""

from dataclasses import dataclass
from typing import Any

import torch

from fib_core.device.chi_square import EXPECTATION_MIN
from fib_core.device.support import Support

COARSE_CELLS = 16
VIEWS = ("tokens", "strata", "blocks", "lanes")


@dataclass(frozen=True)
class Cells:
    """``of``: the cell of every token of the support, in its order. ``masses``: probability of every cell, fp64."""

    of: Any
    masses: Any


def views(chosen: Support, draws: int, generator: torch.Generator) -> dict[str, Cells]:
    """All views in which there are at least two cells, by name."""
    made = {
        "tokens": _tokens(chosen.weights, draws, generator),
        "strata": _strata(chosen.weights, generator),
        "blocks": chosen.ids * COARSE_CELLS // chosen.vocab,
        "lanes": chosen.ids % COARSE_CELLS,
    }
    if chosen.tied:  # which of them is kept is the sampler's choice
        for cell in made.values():
            cell[-chosen.tied :] = int(cell[-chosen.tied :].min())
    found = {name: _pooled(cell, chosen.weights, draws) for name, cell in made.items()}
    return {name: cells for name, cells in found.items() if len(cells.masses) > 1}


def tail_cell(tail: Any, draws: float) -> float:
    """Mass of a pooled cell of the view ``tokens``: no cell can then fall below an expectation of ten."""
    return EXPECTATION_MIN / draws + (float(tail[0]) if tail.numel() else 0.0)


def _tokens(weights: Any, draws: int, generator: torch.Generator) -> Any:
    singles = int((weights >= EXPECTATION_MIN / draws).sum())
    cell = torch.arange(len(weights))
    tail = weights[singles:]
    order = torch.randperm(len(tail), generator=generator)
    mass = tail[order].cumsum(0)
    cell[singles + order] = singles + (mass / tail_cell(tail, draws)).long()
    return cell


def _strata(weights: Any, generator: torch.Generator) -> Any:
    layers = COARSE_CELLS // 2
    stratum = ((weights.cumsum(0) - weights / 2) * layers).long().clamp(0, layers - 1)
    return stratum * 2 + torch.randint(0, 2, stratum.shape, generator=generator)


def _pooled(cell: Any, weights: Any, draws: int) -> Cells:
    """Empty cells dropped, neighbouring cells joined until each is expected ten times; the rest joins the last."""
    masses = torch.bincount(cell, weights)
    filled = masses > 0
    if not bool(filled.all()):
        cell, masses = (filled.long().cumsum(0) - 1)[cell], masses[filled]
    small = masses < EXPECTATION_MIN / draws
    if bool(small[:-1].any()):
        names, pooled = _joined_up(masses.tolist(), EXPECTATION_MIN / draws)
        return Cells(torch.tensor(names)[cell], torch.tensor(pooled, dtype=torch.float64))
    if bool(small.any()) and len(masses) > 1:
        masses[-2] += masses[-1]
        cell, masses = cell.clamp(max=len(masses) - 2), masses[:-1]
    return Cells(cell, masses)


def _joined_up(masses: list[float], least: float) -> tuple[list[int], list[float]]:
    """New number of every cell, mass of every new cell."""
    names, pooled = [], [0.0]
    for mass in masses:
        if pooled[-1] >= least:
            pooled.append(0.0)
        pooled[-1] += mass
        names.append(len(pooled) - 1)
    if len(pooled) > 1 and pooled[-1] < least:
        last = pooled.pop()
        pooled[-1] += last
    return [min(name, len(pooled) - 1) for name in names], pooled

"""One pass over an output and its reference, in blocks that stay in the cache: what the verdict and the figures need.

In: actual and expected of one shape, a rule. Out: a :class:`Scan`. Everything in fp64. Knows no verdicts.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from schemas.numerics import OutputRule

_BLOCK = 1 << 15  # elements: four fp64 buffers of a block fit a core's L2
_BLOCK_ON_DEVICE = 1 << 24  # there a block costs some launches and waits, and 128 MiB a buffer are little


@dataclass(frozen=True)
class Scan:
    """``finite`` False: a non-finite value was met and the other figures mean nothing."""

    finite: bool
    counted: int
    wrong: int = 0
    max_abs: float = 0.0
    max_rel: float | None = None
    largest: float = 0.0
    frobenius: float = 0.0


def rms(expected: Any, rule: OutputRule) -> float:
    """Root mean square of the finite elements, by which atol is scaled; 1 for a log-sum-exp."""
    if rule.kind == "lse":
        return 1.0
    squares, count = 0.0, 0
    for block in _blocks(expected):
        wide = block.to(torch.float64)
        part = float(torch.dot(wide, wide))
        if not math.isfinite(part):
            wide = wide[torch.isfinite(wide)]
            part = float(torch.dot(wide, wide))
        squares, count = squares + part, count + wide.numel()
    return math.sqrt(squares / count) if count else 0.0


def _blocks(values: Any) -> Any:
    return values.reshape(-1).split(_BLOCK if values.device.type == "cpu" else _BLOCK_ON_DEVICE)


def tolerance_of(expected: Any, rule: OutputRule, scale: float) -> Any:
    """``atol * scale + rtol * |expected|``, in this order of operations wherever it is computed."""
    return expected.abs().mul_(rule.rtol).add_(rule.atol * scale)


def scan(actual: Any, expected: Any, rule: OutputRule, scale: float) -> Scan:
    """Blockwise figures; ``scale`` is :func:`rms` of the reference."""
    total = expected.numel()
    sums = _Sums()
    for ours, theirs in zip(_blocks(actual), _blocks(expected), strict=True):
        if total and not sums.add(ours.to(torch.float64), theirs.to(torch.float64), rule, scale):
            return Scan(False, total)
    frobenius = math.sqrt(sums.errors) / (math.sqrt(sums.squares) or math.inf) if rule.kind == "low_precision" else 0.0
    return Scan(True, total, sums.wrong, sums.max_abs, sums.max_rel, sums.largest, frobenius)


class _Sums:
    """Running figures over blocks."""

    def __init__(self) -> None:
        self.wrong, self.max_abs, self.largest = 0, 0.0, 0.0
        self.max_rel: float | None = None
        self.errors, self.squares = 0.0, 0.0

    def add(self, ours: Any, theirs: Any, rule: OutputRule, scale: float) -> bool:
        """Take in one block; False at the first non-finite error, which only non-finite elements give."""
        error = (ours - theirs).abs_()
        worst = float(error.max())
        if not math.isfinite(worst):
            return False
        size = theirs.abs()
        self.max_abs, self.largest = max(self.max_abs, worst), max(self.largest, float(size.max()))
        if worst > rule.atol * scale:  # else every element is inside by its absolute part alone
            self.wrong += int((error > tolerance_of(size, rule, scale)).sum())
        if rule.kind == "low_precision":
            self.errors, self.squares = self.errors + float(error.dot(error)), self.squares + float(size.dot(size))
        self._relative(error, size)
        return True

    def _relative(self, error: Any, size: Any) -> None:
        relative = error.div_(size)
        worst = float(relative.max())
        if not math.isfinite(worst):  # somewhere the reference is zero: it has no relative error
            relative = relative[size != 0]
            if not relative.numel():
                return
            worst = float(relative.max())
        self.max_rel = worst if self.max_rel is None else max(self.max_rel, worst)

"""Why a whole output is wrong in the same way: another logarithm base, a constant factor.

In: actual and expected in fp64, finite, and the rule. Out: a sentence, or None. Explains failures; never causes one.
"""

import math
from typing import Any

import torch

from fib_core.device.scan import tolerance_of
from schemas.numerics import OutputRule

_BASES = {"ln 2": math.log(2), "log2 e": 1 / math.log(2)}
_HEAD_DIMS = (32, 64, 80, 96, 128, 192, 256, 512, 576)
_KNOWN: dict[str, float] = (
    _BASES
    | {f"1/sqrt({d})": d**-0.5 for d in _HEAD_DIMS}
    | {f"sqrt({d})": d**0.5 for d in _HEAD_DIMS if d**0.5 != int(d**0.5)}
)
_NEAR = 0.01  # a fitted factor this near to a known one is said to be it
_NOT_ONE = 0.001  # a factor nearer to 1 than this explains nothing


def wrong_base(actual: Any, expected: Any, rule: OutputRule, scale: float) -> str | None:
    """A log-sum-exp that becomes right when multiplied by ln 2 or log2 e."""
    for name, factor in _BASES.items():
        if _fits(actual * factor, expected, rule, scale):
            declared = f", the declared base is {rule.lse_base}" if rule.lse_base else ""
            return f"right after multiplying by {name}: the logarithm has another base{declared}"
    return None


def wrong_scale(actual: Any, expected: Any, rule: OutputRule, scale: float) -> str:
    """Words ending in "; " if the output is one constant times the reference, else nothing."""
    factor = _fitted(actual, expected)
    if factor is None or abs(factor - 1) < _NOT_ONE or not _fits(actual / factor, expected, rule, scale):
        return ""
    name = _name(factor)
    said = f" ({name})" if name else ""
    return f"scale: the output is {factor:.5g}{said} times the reference, a scale is missing or applied twice; "


def _fitted(actual: Any, expected: Any) -> float | None:
    """Least squares of actual = c * expected; None where either side is zero."""
    ours, theirs = actual.reshape(-1), expected.reshape(-1)
    square, product = float(torch.dot(theirs, theirs)), float(torch.dot(ours, theirs))
    return product / square if square > 0 and product != 0 and theirs.numel() > 1 else None


def _fits(scaled: Any, expected: Any, rule: OutputRule, scale: float) -> bool:
    """Most elements inside the tolerance (all of them, where the rule asks for all)."""
    inside = (scaled - expected).abs() <= tolerance_of(expected, rule, scale)
    return float(inside.double().mean()) >= rule.matched_ratio_min


def _name(factor: float) -> str | None:
    for name, value in _KNOWN.items():
        if abs(factor / value - 1) < _NEAR:
            return name
    exponent: int = round(math.log2(abs(factor)))
    near: bool = abs(factor / math.ldexp(1.0, exponent) - 1) < _NEAR
    return f"2^{exponent}" if near else None

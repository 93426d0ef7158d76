"""Numerical policy, version 1: one output against the reference.

In: actual and expected tensors of one shape, a rule. Out: a finding (None = right) and the figures of the error.
Pure. Knows neither who computed the output nor how fast.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from fib_core.errors import ContractError
from schemas.evaluation import ErrorFigures
from schemas.numerics import OutputRule

_CLUSTER_LINE_MIN = 16  # a shorter row or column says nothing about clustering
_LSE_FACTORS = {"ln 2": math.log(2), "log2 e": 1 / math.log(2)}


@dataclass(frozen=True)
class Finding:
    """Why an output is wrong, in the words of the policy."""

    rule: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Verdict on one output of one call."""

    finding: Finding | None
    figures: ErrorFigures


@dataclass(frozen=True)
class _Pair:
    """Finite positions of both sides in fp64, flat; ``ratio`` is error over tolerance, <= 1 where right."""

    actual: Any
    expected: Any
    error: Any
    ratio: Any
    finite: Any


def compare(
    actual: Any, expected: Any, rule: OutputRule, dtype: str, incumbent_error: float | None = None
) -> Comparison:
    """Judge one output. ``incumbent_error`` is the incumbent's maximum absolute error on this output, if known."""
    if rule.kind == "exact":
        return _exact(actual, expected)
    wide, reference = actual.to(torch.float64), expected.to(torch.float64)
    finding = _nonfinite(wide, reference, rule)
    if finding is not None:
        return Comparison(finding, ErrorFigures(max_abs=None, max_rel=None))
    pair = _pair(wide, reference, rule)
    figures = _figures(pair)
    finding = _low_precision(pair, rule) if rule.kind == "low_precision" else _elementwise(pair, rule)
    if finding is None and incumbent_error is not None and figures.max_abs is not None:
        finding = _beyond_incumbent(pair, figures.max_abs, incumbent_error, dtype)
    return Comparison(finding, figures)


def check_reference(expected: Any, rule: OutputRule, name: str) -> None:
    """Refuse a reference that yields non-finite values which its definition does not declare legal."""
    if rule.kind in ("exact", "samples"):
        return
    illegal = _illegal(expected.to(torch.float64), rule)
    if bool(illegal.any()):
        raise ContractError(f"the reference yields {int(illegal.sum())} undeclared non-finite values in {name}")


def _illegal(values: Any, rule: OutputRule) -> Any:
    illegal = ~torch.isfinite(values)
    tests = {"-inf": torch.isneginf, "inf": torch.isposinf, "nan": torch.isnan}
    for kind in rule.legal_nonfinite:
        illegal &= ~tests[kind](values)
    return illegal


def _nonfinite(actual: Any, expected: Any, rule: OutputRule) -> Finding | None:
    odd = ~torch.isfinite(expected) | ~torch.isfinite(actual)
    if not bool(odd.any()):
        return None
    ours, theirs = actual[odd], expected[odd]
    same = (ours == theirs) | (torch.isnan(ours) & torch.isnan(theirs))
    if bool(same.all()):
        return None
    count = int((~same).sum())
    return Finding("nonfinite", f"{count} of {actual.numel()} elements are non-finite and not what the reference says")


def _pair(actual: Any, expected: Any, rule: OutputRule) -> _Pair:
    finite = torch.isfinite(expected)
    scale = 1.0
    if rule.kind != "lse":
        inner = expected[finite]
        scale = float(inner.square().mean().sqrt()) if inner.numel() else 0.0
    clean = torch.where(finite, expected, 0.0)
    error = torch.where(finite, actual - expected, 0.0).abs()
    tolerance = rule.atol * scale + rule.rtol * clean.abs()
    ratio = torch.where(error == 0, 0.0, error / tolerance)  # 0/0 is right, x/0 is infinitely wrong
    return _Pair(torch.where(finite, actual, 0.0), clean, error, ratio, finite)


def _figures(pair: _Pair) -> ErrorFigures:
    if pair.error.numel() == 0:
        return ErrorFigures(max_abs=0.0, max_rel=0.0, matched_ratio=1.0)
    nonzero = pair.expected != 0
    relative = pair.error[nonzero] / pair.expected[nonzero].abs()
    return ErrorFigures(
        max_abs=float(pair.error.max()),
        max_rel=float(relative.max()) if relative.numel() else None,
        matched_ratio=_matched(pair),
    )


def _matched(pair: _Pair) -> float:
    return float((pair.ratio <= 1).double().mean())


def _elementwise(pair: _Pair, rule: OutputRule) -> Finding | None:
    if pair.ratio.numel() == 0 or bool((pair.ratio <= 1).all()):
        return None
    if rule.kind == "lse":
        for name, factor in _LSE_FACTORS.items():
            off = (pair.actual * factor - pair.expected).abs() / (rule.atol + rule.rtol * pair.expected.abs())
            if bool((off <= 1).all()):
                return Finding("wrong_base", f"right after multiplying by {name}: the logarithm has another base")
    wrong = int((pair.ratio > 1).sum())
    worst = float(pair.ratio.max())
    total = pair.ratio.numel()
    return Finding("tolerance", f"{wrong} of {total} elements outside the tolerance, the worst {worst:.3g} times")


def _low_precision(pair: _Pair, rule: OutputRule) -> Finding | None:
    if pair.ratio.numel() == 0:
        return None
    matched, worst = _matched(pair), float(pair.ratio.max())
    if matched < rule.matched_ratio_min:
        return Finding("tolerance", f"only {matched:.4f} of the elements match, {rule.matched_ratio_min} needed")
    tail = _quantile(pair.ratio, rule.tail_quantile)
    if tail > rule.tail_factor or worst > rule.max_factor:
        return Finding("tail", f"errors reach {tail:.3g} (quantile) and {worst:.3g} (maximum) times the tolerance")
    frobenius = float(pair.error.norm()) / (float(pair.expected.norm()) or math.inf)
    if frobenius > rule.frobenius_max:
        return Finding("frobenius", f"relative Frobenius error {frobenius:.4f} above {rule.frobenius_max}")
    return _cluster(pair.ratio > 1, rule)


def _quantile(values: Any, share: float) -> float:
    rank = min(max(math.ceil(share * values.numel()), 1), values.numel())
    return float(values.reshape(-1).kthvalue(rank).values)


def _cluster(wrong: Any, rule: OutputRule) -> Finding | None:
    if wrong.dim() == 0:
        return None
    matrix = wrong.reshape(-1, wrong.shape[-1]).double()
    for axis, name in ((1, "row"), (0, "column")):
        if matrix.shape[axis] >= _CLUSTER_LINE_MIN:
            worst = float(matrix.mean(dim=axis).max())
            if worst > rule.cluster_ratio_max:
                return Finding("cluster", f"{worst:.2f} of the elements of one {name} are wrong")
    return None


def _beyond_incumbent(pair: _Pair, max_abs: float, incumbent_error: float, dtype: str) -> Finding | None:
    largest = float(pair.expected.abs().max()) if pair.expected.numel() else 0.0
    allowed = 4.0 * incumbent_error + ulp(largest, dtype)
    if max_abs <= allowed:
        return None
    return Finding("incumbent_error", f"error {max_abs:.3g} above {allowed:.3g}: 4 x the incumbent's + 1 ulp")


def ulp(value: float, dtype: str) -> float:
    """Spacing of ``dtype`` at ``value``."""
    info = torch.finfo(getattr(torch, dtype))
    exponent = math.floor(math.log2(abs(value))) if value else -math.inf
    return float(max(info.eps * 2.0**exponent, info.eps * info.tiny))  # never below the smallest subnormal


def _exact(actual: Any, expected: Any) -> Comparison:
    wrong = actual != expected
    count, total = int(wrong.sum()), wrong.numel()
    difference = (actual.to(torch.float64) - expected.to(torch.float64)).abs()
    worst, matched = (float(difference.max()), 1 - count / total) if total else (0.0, 1.0)
    figures = ErrorFigures(max_abs=worst, max_rel=None, matched_ratio=matched)
    finding = Finding("tolerance", f"{count} of {total} elements differ; equality is asked for") if count else None
    return Comparison(finding, figures)

"""Numerical policy, version 1: one output against the reference.

In: actual and expected tensors of one shape, a rule. Out: a finding (None = right) and the figures of the error.
Pure. Knows neither who computed the output nor how fast. Runs after every timed call: what is right is seen in one
pass over blocks that stay in the cache (:mod:`fib_core.device.scan`); only what is wrong is looked at in full.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from fib_core.device.clusters import cluster
from fib_core.device.diagnose import wrong_base, wrong_scale
from fib_core.device.scan import Scan, rms, scan, tolerance_of
from fib_core.errors import ContractError
from schemas.evaluation import ErrorFigures
from schemas.numerics import INCUMBENT_ERROR_FACTOR, OutputRule


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
class Incumbent:
    """What the honest incumbent's error allows a candidate: ``factor`` times ``max_abs`` plus one ulp of the output."""

    max_abs: float
    factor: float = INCUMBENT_ERROR_FACTOR


def compare(
    actual: Any, expected: Any, rule: OutputRule, dtype: str, incumbent_error: Incumbent | float | None = None
) -> Comparison:
    """Judge one output of declared ``dtype``. ``incumbent_error``: its maximum absolute error here, if known.

    Raises :class:`ContractError` where the reference itself is non-finite and its definition does not declare that.
    """
    if rule.kind == "exact":
        return _exact(actual, expected)
    expected = expected.reshape(actual.shape)
    scale = rms(expected, rule)
    seen = scan(actual, expected, rule, scale)
    if not seen.finite:
        finding = _nonfinite(actual, expected, rule)
        if finding is not None:
            return Comparison(finding, ErrorFigures(max_abs=None, max_rel=None))
        actual, expected = _masked(actual, expected)
        seen = scan(actual, expected, rule, scale)
    finding = _judged(actual, expected, rule, scale, seen)
    if finding is None and incumbent_error is not None:
        known = incumbent_error if isinstance(incumbent_error, Incumbent) else Incumbent(incumbent_error)
        finding = _beyond_incumbent(seen, known, dtype)
    return Comparison(finding, _figures(seen))


def check_reference(expected: Any, rule: OutputRule, name: str) -> None:
    """Refuse a reference that yields non-finite values which its definition does not declare legal."""
    if not expected.is_floating_point() or rule.kind == "samples":
        return
    count = _illegal(expected.to(torch.float64), rule)
    if count:
        raise ContractError(f"the reference yields {count} undeclared non-finite values in {name}")


def ulp(value: float, dtype: str) -> float:
    """Spacing of ``dtype`` at ``value``; 1 for integers."""
    kind = getattr(torch, dtype)
    if not kind.is_floating_point:
        return 1.0
    info = torch.finfo(kind)
    exponent = math.floor(math.log2(abs(value))) if value else -math.inf
    return float(max(info.eps * 2.0**exponent, info.eps * info.tiny))  # never below the smallest subnormal


def _illegal(values: Any, rule: OutputRule) -> int:
    illegal = ~torch.isfinite(values)
    tests = {"-inf": torch.isneginf, "inf": torch.isposinf, "nan": torch.isnan}
    for kind in rule.legal_nonfinite:
        illegal &= ~tests[kind](values)
    return int(illegal.sum())


def _nonfinite(actual: Any, expected: Any, rule: OutputRule) -> Finding | None:
    """Non-finite where the other side is not the same: a finding. Undeclared in the reference: its own fault."""
    check_reference(expected, rule, "an output")
    ours, theirs = actual.to(torch.float64), expected.to(torch.float64)
    odd = ~torch.isfinite(ours) | ~torch.isfinite(theirs)
    ours, theirs = ours[odd], theirs[odd]
    same = (ours == theirs) | (torch.isnan(ours) & torch.isnan(theirs))
    count = int((~same).sum())
    if not count:
        return None
    return Finding("nonfinite", f"{count} of {actual.numel()} elements are non-finite and not what the reference says")


def _masked(actual: Any, expected: Any) -> tuple[Any, Any]:
    """Both sides in fp64, zero where the reference is (legally) not finite: equal there, so never wrong."""
    wide = expected.to(torch.float64)
    legal = ~torch.isfinite(wide)
    return actual.to(torch.float64).masked_fill(legal, 0.0), wide.masked_fill(legal, 0.0)


def _judged(actual: Any, expected: Any, rule: OutputRule, scale: float, seen: Scan) -> Finding | None:
    if rule.kind != "low_precision":
        return _elementwise(actual.to(torch.float64), expected.to(torch.float64), rule, scale) if seen.wrong else None
    finding = None
    if seen.wrong or min(rule.tail_factor, rule.max_factor) < 1:
        finding = _scattered(actual.to(torch.float64), expected.to(torch.float64), rule, scale)
    if finding is None and seen.frobenius > rule.frobenius_max:
        finding = Finding("frobenius", f"relative Frobenius error {seen.frobenius:.4f} above {rule.frobenius_max}")
    return finding


def _elementwise(actual: Any, expected: Any, rule: OutputRule, scale: float) -> Finding:
    base = wrong_base(actual, expected, rule, scale) if rule.kind == "lse" else None
    if base is not None:
        return Finding("wrong_base", base)
    ratio = _ratio(actual, expected, rule, scale)
    count, worst = int((ratio > 1).sum()), float(ratio.max())
    reason = f"{count} of {ratio.numel()} elements outside the tolerance, the worst {worst:.3g} times"
    return Finding("tolerance", wrong_scale(actual, expected, rule, scale) + reason)


def _ratio(actual: Any, expected: Any, rule: OutputRule, scale: float) -> Any:
    """Error over tolerance, at most 1 exactly where the element is right: 0/0 is right, x/0 is infinitely wrong."""
    error, allowed = (actual - expected).abs(), tolerance_of(expected, rule, scale)
    ratio = torch.where(error == 0, 0.0, error / allowed)
    right = error <= allowed  # the division rounds; the comparison decides
    return torch.where(right, ratio.clamp(max=1.0), ratio.clamp(min=1.0 + 2**-52))


def _scattered(actual: Any, expected: Any, rule: OutputRule, scale: float) -> Finding | None:
    """Some elements are wrong: few enough, near enough, nowhere in lumps?"""
    ratio = _ratio(actual, expected, rule, scale)
    if not ratio.numel():
        return None
    matched, worst = float((ratio <= 1).double().mean()), float(ratio.max())
    if matched < rule.matched_ratio_min:
        reason = f"only {matched:.4f} of the elements match, {rule.matched_ratio_min} needed"
        return Finding("tolerance", wrong_scale(actual, expected, rule, scale) + reason)
    tail = _quantile(ratio, rule.tail_quantile)
    if tail > rule.tail_factor or worst > rule.max_factor:
        return Finding("tail", f"errors reach {tail:.3g} (quantile) and {worst:.3g} (maximum) times the tolerance")
    lump = cluster(ratio > 1, rule)
    return Finding("cluster", lump) if lump else None


def _quantile(values: Any, share: float) -> float:
    rank = min(max(math.ceil(share * values.numel()), 1), values.numel())
    return float(values.reshape(-1).kthvalue(rank).values)


def _figures(seen: Scan) -> ErrorFigures:
    matched = 1 - seen.wrong / seen.counted if seen.counted else 1.0
    return ErrorFigures(max_abs=seen.max_abs, max_rel=seen.max_rel, matched_ratio=matched)


def _beyond_incumbent(seen: Scan, incumbent: Incumbent, dtype: str) -> Finding | None:
    allowed = incumbent.factor * incumbent.max_abs + ulp(seen.largest, dtype)
    if seen.max_abs <= allowed:
        return None
    reason = f"error {seen.max_abs:.3g} above {allowed:.3g}: {incumbent.factor:g} x the incumbent's + 1 ulp"
    return Finding("incumbent_error", reason)


def _exact(actual: Any, expected: Any) -> Comparison:
    if actual.dtype == torch.float4_e2m1fn_x2:  # two values a byte, which torch cannot widen
        actual, expected = actual.view(torch.uint8), expected.view(torch.uint8)
    expected = expected.reshape(actual.shape)
    check_reference(expected, OutputRule(kind="exact", atol=0, rtol=0), "an output compared for equality")
    wrong = actual != expected
    count, total = int(wrong.sum()), wrong.numel()
    difference = (actual.to(torch.float64) - expected.to(torch.float64)).abs()
    worst, matched = (float(difference.max()), 1 - count / total) if total else (0.0, 1.0)
    figures = ErrorFigures(max_abs=worst if math.isfinite(worst) else None, max_rel=None, matched_ratio=matched)
    finding = Finding("tolerance", f"{count} of {total} elements differ; equality is asked for") if count else None
    return Comparison(finding, figures)

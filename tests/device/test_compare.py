"""The numerical policy: what is inside the tolerance passes, just outside does not, nothing non-finite slips by."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fib_core.device.compare import check_reference, compare, ulp
from fib_core.errors import ContractError
from schemas.numerics import OutputRule, default_rule

seeds = st.integers(0, 2**31 - 1)
FP32 = default_rule("out", "float32", "gemm")
LSE = default_rule("lse", "float32", "gqa_paged")
MOE = default_rule("out", "bfloat16", "moe")


def _values(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _rule(actual: torch.Tensor, expected: torch.Tensor, rule: OutputRule, **more: float) -> str | None:
    finding = compare(actual, expected, rule, "float32", **more).finding
    return finding.rule if finding else None


@settings(max_examples=60, deadline=None)
@given(seed=seeds, size=st.integers(1, 40), scale=st.sampled_from([1e-6, 1.0, 1e6]), where=st.integers(0, 39))
def test_one_element_inside_the_tolerance_passes_and_just_outside_fails(
    seed: int, size: int, scale: float, where: int
) -> None:
    expected = _values(seed, size) * scale
    index = where % size
    rms = float(expected.square().mean().sqrt())
    tolerance = 1e-5 * rms + 1e-5 * abs(float(expected[index]))
    for factor, wanted in ((0.999, None), (1.001, "tolerance")):
        actual = expected.clone()
        actual[index] += factor * tolerance
        assert _rule(actual, expected, FP32) == wanted


@settings(max_examples=30, deadline=None)
@given(seed=seeds, bad=st.sampled_from([math.nan, math.inf, -math.inf]), rule=st.sampled_from([FP32, LSE, MOE]))
def test_a_non_finite_value_where_the_reference_is_finite_fails(seed: int, bad: float, rule: OutputRule) -> None:
    expected = _values(seed, 8, 32)
    actual = expected.clone()
    actual[3, 5] = bad
    assert _rule(actual, expected, rule) == "nonfinite"


def test_legal_infinities_must_be_where_the_reference_has_them() -> None:
    expected = torch.tensor([1.0, -math.inf, 2.0])
    assert _rule(expected.clone(), expected, LSE) is None
    assert _rule(torch.tensor([1.0, -1e30, 2.0]), expected, LSE) == "nonfinite"
    assert _rule(torch.tensor([1.0, math.inf, 2.0]), expected, LSE) == "nonfinite"
    check_reference(expected, LSE, "lse")
    with pytest.raises(ContractError, match="non-finite"):
        check_reference(expected, FP32, "out")


@settings(max_examples=20, deadline=None)
@given(seed=seeds, factor=st.sampled_from([math.log(2), 1 / math.log(2)]))
def test_a_logarithm_of_another_base_is_named(seed: int, factor: float) -> None:
    expected = _values(seed, 16) + 5
    assert _rule(expected * factor, expected, LSE) == "wrong_base"
    assert _rule(expected * 1.2, expected, LSE) == "tolerance"


@settings(max_examples=20, deadline=None)
@given(seed=seeds, factor=st.sampled_from([64**-0.5, math.log(2), 8.0, -1.0, 1.7]), rule=st.sampled_from([FP32, MOE]))
def test_a_missing_scale_is_named_with_its_factor(seed: int, factor: float, rule: OutputRule) -> None:
    expected = _values(seed, 16, 32)
    finding = compare(expected * factor, expected, rule, "float32").finding
    assert finding is not None
    assert finding.rule == "tolerance"
    assert f"{factor:.5g}" in finding.reason
    names = {64**-0.5: "1/sqrt(64)", math.log(2): "ln 2", 8.0: "2^3"}
    assert f"({names.get(factor, '')})" in finding.reason or factor not in names
    other = compare(_values(seed + 1, 16, 32), expected, rule, "float32").finding
    assert other is not None
    assert "scale" not in other.reason, "garbage is no multiple of the reference"


def _oracle(actual: torch.Tensor, expected: torch.Tensor, rule: OutputRule) -> tuple[bool, float, float | None, float]:
    """The policy word for word, in one piece: right?, max_abs, max_rel, matched ratio. Finite values only."""
    a, e = actual.double().flatten(), expected.double().flatten()
    scale = 1.0 if rule.kind == "lse" or not len(e) else math.sqrt(sum(float(x) ** 2 for x in e) / len(e))
    errors = [abs(float(x) - float(y)) for x, y in zip(a, e, strict=True)]
    allowed = [rule.atol * scale + rule.rtol * abs(float(y)) for y in e]
    inside = [error <= limit for error, limit in zip(errors, allowed, strict=True)]
    relative = [error / abs(float(y)) for error, y in zip(errors, e, strict=True) if y != 0]
    matched = sum(inside) / len(inside) if inside else 1.0
    return all(inside), max(errors, default=0.0), max(relative, default=None), matched


@settings(max_examples=80, deadline=None)
@given(
    seed=seeds,
    shape=st.lists(st.integers(0, 7), max_size=3),
    error=st.sampled_from([0.0, 3e-6, 1e-5, 1e-3, 1.0]),
    zeros=st.booleans(),
    rule=st.sampled_from([FP32, LSE]),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_the_quick_pass_says_what_the_policy_says_word_for_word(
    seed: int, shape: list[int], error: float, zeros: bool, rule: OutputRule, dtype: torch.dtype
) -> None:
    expected = _values(seed, *shape)
    if zeros:
        expected = torch.where(_values(seed + 1, *shape) > 0, expected, 0.0)
    actual = (expected + error * _values(seed + 2, *shape)).to(dtype)
    right, max_abs, max_rel, matched = _oracle(actual, expected, rule)
    found = compare(actual, expected, rule, "float32")
    assert (found.finding is None) == right
    assert found.figures.max_abs == max_abs
    assert found.figures.max_rel == max_rel
    assert found.figures.matched_ratio == pytest.approx(matched)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, where=st.integers(0, 99_999), rule=st.sampled_from([FP32, LSE, MOE]))
def test_one_wrong_element_in_any_block_is_seen(seed: int, where: int, rule: OutputRule) -> None:
    expected = _values(seed, 1000, 100)
    actual = expected.clone()
    assert _rule(actual, expected, rule) is None
    actual.view(-1)[where] += 1e3
    assert _rule(actual, expected, rule) in ("tolerance", "tail")
    actual.view(-1)[where] = math.nan
    assert _rule(actual, expected, rule) == "nonfinite"


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_low_precision_forgives_scattered_errors_but_not_a_tail_a_row_or_a_column(seed: int) -> None:
    expected = _values(seed, 64, 128)
    tolerance = 1e-2 * float(expected.square().mean().sqrt()) + 1e-2 * expected.abs()
    scattered = expected.clone()
    scattered.view(-1)[::131] += 2 * tolerance.view(-1)[::131]
    assert _rule(scattered, expected, MOE) is None
    far = expected.clone()
    far[0, 0] += 11 * tolerance[0, 0]
    assert _rule(far, expected, MOE) == "tail"
    row = expected.clone()
    row[5, :30] += 2 * tolerance[5, :30]
    assert _rule(row, expected, MOE) == "cluster"
    column = expected.clone()
    column[:20, 7] += 2 * tolerance[:20, 7]
    assert _rule(column, expected, MOE) == "cluster"
    many = expected + 2 * tolerance * (torch.arange(128) % 50 == 0)
    assert _rule(many, expected, MOE) == "tolerance"


def test_a_systematic_shift_inside_the_tolerance_is_a_frobenius_error() -> None:
    expected = _values(1, 64, 128)
    tight = MOE.model_copy(update={"frobenius_max": 0.005})
    assert _rule(expected * 1.008, expected, MOE) is None
    assert _rule(expected * 1.008, expected, tight) == "frobenius"


@settings(max_examples=30, deadline=None)
@given(seed=seeds, error=st.floats(1e-9, 1e-7))
def test_four_times_the_incumbents_error_plus_one_ulp_is_the_limit(seed: int, error: float) -> None:
    expected = _values(seed, 50)
    limit = 4 * error + ulp(float(expected.abs().max()), "float32")
    for factor, wanted in ((0.99, None), (1.01, "incumbent_error")):
        actual = expected.clone()
        actual[7] += factor * limit
        assert _rule(actual, expected, FP32.model_copy(update={"atol": 1.0}), incumbent_error=error) == wanted


@settings(max_examples=30, deadline=None)
@given(value=st.floats(1e-3, 1e6), dtype=st.sampled_from(["float32", "float16", "bfloat16"]))
def test_an_ulp_is_the_distance_to_the_next_number(value: float, dtype: str) -> None:
    held = torch.tensor(min(value, 6e4), dtype=getattr(torch, dtype))
    bits = torch.int32 if dtype == "float32" else torch.int16
    after = (held.view(bits) + 1).view(held.dtype)
    assert ulp(float(held), dtype) == float(after.double() - held.double())


def test_integers_are_compared_exactly_and_empty_outputs_are_right() -> None:
    exact = default_rule("index", "int32", "other")
    numbers = torch.arange(10)
    assert _rule(numbers, numbers, exact) is None
    assert _rule(numbers + (numbers == 4), numbers, exact) == "tolerance"
    assert _rule(torch.empty(0, 4), torch.empty(0, 4), FP32) is None
    assert _rule(torch.empty(0, 4), torch.empty(0, 4), MOE) is None

"""The numerical policy at its edges: undeclared infinities, short lines, narrow and exact dtypes, scalars."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fib_core.device.compare import Incumbent, compare
from fib_core.errors import ContractError
from schemas.numerics import OutputRule, default_rule

seeds = st.integers(0, 2**31 - 1)
FP32 = default_rule("out", "float32", "gemm")
MOE = default_rule("out", "bfloat16", "moe")


def _values(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _rule(actual: torch.Tensor, expected: torch.Tensor, rule: OutputRule) -> str | None:
    finding = compare(actual, expected, rule, "float32").finding
    return finding.rule if finding else None


def test_an_undeclared_non_finite_reference_blames_no_kernel() -> None:
    for bad in (math.nan, math.inf):
        expected = torch.tensor([1.0, bad])
        for actual in (expected.clone(), torch.zeros(2)):
            with pytest.raises(ContractError, match="undeclared"):
                compare(actual, expected, FP32, "float32")
    with pytest.raises(ContractError, match="undeclared"):
        compare(torch.zeros(2), torch.tensor([1.0, math.nan]), default_rule("o", "float64", "other"), "float64")
    declared = FP32.model_copy(update={"legal_nonfinite": ("nan",)})
    assert _rule(torch.tensor([1.0, math.nan]), torch.tensor([1.0, math.nan]), declared) is None
    assert _rule(torch.tensor([1.0, 0.0]), torch.tensor([1.0, math.nan]), declared) == "nonfinite"
    assert _rule(torch.tensor([1.1, math.nan]), torch.tensor([1.0, math.nan]), declared) == "tolerance"


@pytest.mark.parametrize("shape", [(400, 4), (40, 8), (64, 64), (20, 20), (1000, 2), (2, 1000), (1, 200)])
@pytest.mark.parametrize("kind", ["garbage rows", "dead columns"])
def test_five_percent_of_garbage_rows_or_dead_columns_fails_at_any_size(shape: tuple[int, int], kind: str) -> None:
    expected = _values(3, *shape)
    actual = expected.clone()
    count, width = shape
    if kind == "garbage rows":
        actual[: max(1, count // 20)] = _values(4, max(1, count // 20), width)
    else:
        actual[:, : max(1, width // 20)] = 0
    assert _rule(expected.clone(), expected, MOE) is None
    assert _rule(actual, expected, MOE) in ("tolerance", "tail", "cluster")


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_scattered_honest_errors_in_short_lines_are_forgiven(seed: int) -> None:
    """One element in two hundred, anywhere: a quarter of a line of four may then be wrong."""
    expected = _values(seed, 500, 4)
    tolerance = 1e-2 * float(expected.square().mean().sqrt()) + 1e-2 * expected.abs()
    hit = torch.rand(500, 4, generator=torch.Generator().manual_seed(seed)) < 0.003
    assert _rule(expected + 2 * tolerance * hit, expected, MOE) is None


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_fp8_outputs_are_judged_as_low_precision(dtype: str) -> None:
    rule = default_rule("out", dtype, "quantise")
    expected = _values(1, 50, 64)
    narrow = expected.to(getattr(torch, dtype))
    assert compare(narrow, narrow.to(torch.float64), rule, dtype, 0.0).finding is None
    finding = compare(narrow, -expected, rule, dtype).finding
    assert finding is not None


def test_booleans_scalars_and_packed_bytes_are_compared_exactly() -> None:
    exact = default_rule("mask", "bool", "other")
    yes = torch.tensor([True, False])
    assert _rule(yes, yes.clone(), exact) is None
    assert _rule(yes, ~yes, exact) == "tolerance"
    big = torch.tensor(2**60, dtype=torch.int64)
    assert _rule(big, big.clone(), exact) is None
    assert _rule(big, big + 1, exact) == "tolerance"
    packed = torch.arange(8, dtype=torch.uint8)
    assert _rule(packed.view(torch.float4_e2m1fn_x2), packed.clone().view(torch.float4_e2m1fn_x2), exact) is None
    assert _rule(packed.view(torch.float4_e2m1fn_x2), (packed + 1).view(torch.float4_e2m1fn_x2), exact) == "tolerance"
    assert _rule(torch.tensor(1.0), torch.tensor(1.0).double(), FP32) is None
    assert _rule(torch.tensor(1.0), torch.tensor(1.1).double(), FP32) == "tolerance"
    declared = FP32.model_copy(update={"legal_nonfinite": ("nan",)})
    assert _rule(torch.tensor(1.0), torch.tensor(math.nan), declared) == "nonfinite"


def test_the_policys_own_factor_caps_the_error() -> None:
    expected = _values(5, 50)
    loose = FP32.model_copy(update={"atol": 1.0})
    actual = expected.clone()
    actual[3] += 3e-6
    assert compare(actual, expected, loose, "float32", Incumbent(1e-6, factor=4.0)).finding is None
    finding = compare(actual, expected, loose, "float32", Incumbent(1e-6, factor=1.5)).finding
    assert finding is not None
    assert finding.rule == "incumbent_error"
    assert "1.5 x" in finding.reason

"""Every input set has contents of its own: who remembers outputs by their inputs never meets the same inputs again."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernels import ADD, workload

from fib_core.device import inputs
from fib_core.device.compare import compare
from fib_core.device.inputs import InputSource
from schemas.definition import Definition

SETS = 8
NORM = Definition.model_validate(
    {
        "name": "norm", "op_type": "rmsnorm", "axes": {"M": {"type": "var"}, "H": {"type": "var"}},
        "inputs": {"x": {"shape": ["M", "H"], "dtype": "bfloat16"}, "weight": {"shape": ["H"], "dtype": "bfloat16"}},
        "outputs": {"out": {"shape": ["M", "H"], "dtype": "bfloat16"}},
        "reference": "def run(x, weight):\n    return x * weight\n",
    }
)  # fmt: skip


@given(st.text(min_size=1, max_size=8))
def test_no_two_sets_are_alike_even_where_hardly_more_windows_exist(seed: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "_SPREAD_MIN", SETS)
        patch.setattr(inputs, "_SPREAD_MAX", SETS)
        source = InputSource(ADD, workload(ADD, N=4), seed, None)
        seen = {tuple(source.values(index)["a"].tolist()) for index in range(SETS)}
    assert len(seen) == SETS


def test_a_set_is_the_same_whatever_was_asked_before() -> None:
    whole = InputSource(ADD, workload(ADD, N=64), "secret", None)
    several = [whole.values(index)["a"] for index in range(5)]
    alone = InputSource(ADD, workload(ADD, N=64), "secret", None)
    assert torch.equal(alone.values(4)["a"], several[4])
    alone.forget()
    assert torch.equal(alone.values(2)["a"], several[2])


def test_no_stretch_of_a_set_comes_again_in_another() -> None:
    source = InputSource(ADD, workload(ADD, N=8192), "secret", None)
    pairs = [set(_neighbours(source.values(index)["a"])) for index in range(SETS)]
    met = sum(len(one & other) for place, one in enumerate(pairs) for other in pairs[:place])
    assert met == 0


def test_a_window_of_an_earlier_set_would_be_noticed() -> None:
    pool = torch.randn(16384)
    assert len(set(_neighbours(pool[:8192])) & set(_neighbours(pool[5000:13192]))) > 3000


def test_mixed_contents_are_still_normal_and_their_scale_is_not_known() -> None:
    source = InputSource(ADD, workload(ADD, N=1 << 16), "secret", None)
    sets = [source.values(index)["a"] for index in range(SETS)]
    scales = [values.std().item() for values in sets]
    assert all(0.49 < scale < 1.52 for scale in scales)
    assert len({round(scale, 2) for scale in scales}) > SETS // 2
    for values in sets:
        inside = (values / values.std()).abs() < 1
        assert inside.float().mean().item() == pytest.approx(0.6827, abs=0.013)  # seven standard errors


@given(st.text(min_size=1, max_size=8))
def test_a_single_row_is_small_middling_and_large_in_every_three_sets(seed: str) -> None:
    source = InputSource(ADD, workload(ADD, N=4096), seed, None)
    for first in (0, 3, 6):
        scales = sorted(source.values(first + place)["a"].std().item() for place in range(3))
        for scale, low in zip(scales, (0.5, 0.5 + 1 / 3, 0.5 + 2 / 3), strict=True):
            assert low * 0.94 < scale < (low + 1 / 3) * 1.06  # five standard errors


def test_a_norm_that_does_not_reduce_is_wrong_however_long_its_rows() -> None:
    """Of rows of one scale it is right to the tolerance of bfloat16: their mean square is known beforehand."""
    source = InputSource(NORM, workload(NORM, M=4, H=16384), "secret", None)
    rule = NORM.policy.outputs["out"]
    for index in range(SETS):
        values = source.values(index)
        wide, weight = values["x"].double(), values["weight"].double()
        honest = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
        known = wide * torch.rsqrt(wide[:1].pow(2).mean(-1, keepdim=True) + 1e-6) * weight  # of the first row alone
        lazy = (wide * weight, known)
        assert compare(honest.bfloat16(), honest, rule, "bfloat16").finding is None
        assert all(compare(item.bfloat16(), honest, rule, "bfloat16").finding is not None for item in lazy)
        even = honest / weight * torch.tensor([[1.004], [0.996], [1.0], [0.998]])  # as rows of one scale are
        assert compare((even * weight).bfloat16(), honest, rule, "bfloat16").finding is None


def _neighbours(values: torch.Tensor) -> list[tuple[float, float]]:
    """Every two elements that follow each other: equal by chance in one of 1e13 comparisons or so."""
    listed = values.tolist()
    return list(pairwise(listed))

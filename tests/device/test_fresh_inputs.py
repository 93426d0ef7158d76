"""Every input set has contents of its own: who remembers outputs by their inputs never meets the same inputs again."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernels import ADD, workload

from fib_core.device import inputs
from fib_core.device.inputs import InputSource

SETS = 8


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


def test_mixed_contents_are_still_standard_normal() -> None:
    source = InputSource(ADD, workload(ADD, N=1 << 16), "secret", None)
    for index in range(SETS):
        deviation = source.values(index)["a"].std().item()
        assert deviation == pytest.approx(1, abs=0.02)  # seven standard errors


def _neighbours(values: torch.Tensor) -> list[tuple[float, float]]:
    """Every two elements that follow each other: equal by chance in one of 1e13 comparisons or so."""
    listed = values.tolist()
    return list(pairwise(listed))

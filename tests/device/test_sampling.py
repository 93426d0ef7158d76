"""Samplers: an exact one passes, a distorted one does not; boundary ties are legal; the power is what it claims."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling_cases import draws_from, public_filter, row_of, rule_of

from fib_core.device import draw_cells
from fib_core.device.sampling import (
    MASK_SLACK,
    Rows,
    distribution_test,
    liveliest_row,
    mask_finding,
    needed_draws,
    thresholds,
)
from fib_core.device.support import support, supports

filters = st.tuples(st.sampled_from([None, 1, 7, 40, 400]), st.sampled_from([None, 0.3, 0.9, 1.0]))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), chosen=filters)
def test_an_exact_sampler_is_accepted(seed: int, chosen: tuple[int | None, float | None]) -> None:
    rows = row_of(seed, *chosen)
    assert rule_of(rows, draws_from(public_filter(rows), seed)) is None


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), top_k=st.sampled_from([7, 40]))
def test_uniform_over_the_support_is_rejected(seed: int, top_k: int) -> None:
    rows = row_of(seed, top_k, None)
    assert rule_of(rows, draws_from((public_filter(rows) > 0).double(), seed)) == "distribution"


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_shift_of_five_percent_of_the_mass_between_strata_is_rejected(seed: int) -> None:
    rows = row_of(seed, 100, None)
    weights = public_filter(rows)
    order = weights.argsort(descending=True)
    top = order[weights[order].cumsum(0) - weights[order] < 0.5]
    shifted = weights.clone()
    shifted[top] *= 1 - 0.06 / weights[top].sum()
    rest = torch.ones_like(weights, dtype=torch.bool)
    rest[top] = False
    shifted[rest] *= 1 + 0.06 / weights[rest].sum()
    assert rule_of(rows, draws_from(shifted, seed, calls=needed_draws(rows, 0) // 24 + 1)) == "distribution"


def test_the_needed_number_of_draws_attains_the_power_of_the_contract_and_half_of_it_does_not() -> None:
    rows = row_of(3, 100, None)
    count = needed_draws(rows, 0)
    draws = draws_from(public_filter(rows), 3, calls=-(-count // 16), batch=16)
    result = distribution_test(rows, 0, draws, torch.Generator().manual_seed(1))
    assert result.finding is None
    assert result.draws >= count
    assert result.power >= 0.999
    assert result.coarse_power > result.power
    half = distribution_test(rows, 0, draws[: len(draws) // 2], torch.Generator().manual_seed(1))
    assert half.power < 0.9


def test_larger_supports_need_more_draws_and_a_single_token_none() -> None:
    needed = [needed_draws(row_of(3, k, None), 0) for k in (1, 10, 40, 400)]
    assert needed[0] == 0
    assert needed == sorted(set(needed))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), chosen=filters, draws=st.integers(20, 100_000))
def test_every_cell_of_every_view_is_expected_ten_times_and_no_mass_is_lost(
    seed: int, chosen: tuple[int | None, float | None], draws: int
) -> None:
    found = support(row_of(seed, *chosen), 0)
    assert math.isclose(float(found.weights.sum()), 1)
    for cells in draw_cells.views(found, draws, torch.Generator().manual_seed(seed)).values():
        assert float(cells.masses.min()) * draws >= 10 - 1e-6
        assert torch.allclose(torch.bincount(cells.of, found.weights), cells.masses)
        assert math.isclose(float(cells.masses.sum()), 1)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), chosen=filters)
def test_the_support_is_what_the_public_references_keep(
    seed: int, chosen: tuple[int | None, float | None]
) -> None:
    rows = row_of(seed, *chosen)
    found = support(rows, 0)
    dense = torch.zeros(400, dtype=torch.float64).index_put((found.ids,), found.weights)
    assert torch.allclose(dense, public_filter(rows), atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), chosen=filters)
def test_a_token_outside_the_support_is_found_and_every_token_inside_is_legal(
    seed: int, chosen: tuple[int | None, float | None]
) -> None:
    rows = row_of(seed, *chosen, vocab=50)
    legal = public_filter(rows) > 0
    limits = thresholds(rows, 0.0)
    for token in range(50):
        found = mask_finding(rows, limits, torch.tensor([[token]]))
        assert (found is None) == bool(legal[token])
    for token in (-1, 50):
        assert mask_finding(rows, limits, torch.tensor([[token]])) is not None


def test_ties_at_the_boundary_are_legal_and_the_choice_among_them_is_the_samplers() -> None:
    probs = torch.tensor([[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]], dtype=torch.float64)
    rows = Rows(probs, torch.tensor([3]), None)
    for tied in (2, 5):
        weights = torch.tensor([0.4, 0.2, 0, 0, 0, 0], dtype=torch.float64)
        weights[tied] = 0.1
        assert rule_of(rows, draws_from(weights / weights.sum(), tied)) is None
    assert rule_of(rows, draws_from(probs[0], 1)) == "distribution", "all four ties kept: one token too many"


def test_the_liveliest_row_is_chosen() -> None:
    sharp = torch.tensor([0.97, 0.01, 0.01, 0.01], dtype=torch.float64)
    rows = Rows(torch.stack([sharp, torch.full((4,), 0.25, dtype=torch.float64), sharp]), None, None)
    assert liveliest_row(rows) == 1


def test_a_boundary_within_rounding_may_fall_on_either_side() -> None:
    """Three tokens hold 0.8 up to rounding: a sampler that goes on to the fourth and one that stops are both right."""
    probs = torch.tensor([[0.5, 0.2, 0.1 + 1e-7, 0.1, 0.1 - 1e-7]], dtype=torch.float64)
    rows = Rows(probs, None, torch.tensor([0.8], dtype=torch.float64))
    assert len(supports(rows, 0, 10_000)) == 2
    for kept in (3, 4):
        weights = torch.where(torch.arange(5) < kept, probs[0], 0.0)
        assert rule_of(rows, draws_from(weights / weights.sum(), kept)) is None
    assert rule_of(rows, draws_from(torch.tensor([0.5, 0.2, 0.0, 0.0, 0.0]).double(), 1)) == "distribution"


@pytest.mark.parametrize("top_p", [0.9, 0.5])
def test_a_sampler_that_sums_in_fp32_one_after_the_other_is_inside_the_mask(top_p: float) -> None:
    """The longest prefix that such a sum can yield at a real vocabulary; ten times as far outside is not granted."""
    rows = row_of(1, None, top_p, vocab=151_936)
    ordered = rows.probs[0].float().sort(descending=True)
    kept = int((np.cumsum(ordered.values.numpy(), dtype=np.float32) <= np.float32(top_p)).sum()) + 1
    limits = thresholds(rows, MASK_SLACK)
    assert mask_finding(rows, limits, ordered.indices[:kept, None]) is None
    beyond = int((ordered.values.double().cumsum(0) <= top_p * (1 + 10 * MASK_SLACK)).sum())
    assert mask_finding(rows, limits, ordered.indices[beyond : beyond + 1, None]) is not None


def test_all_equal_probabilities_are_told_apart_when_all_are_kept() -> None:
    probs = torch.full((1, 64), 1 / 64, dtype=torch.float64)
    half = (torch.arange(64) < 32).double()
    assert rule_of(Rows(probs, None, None), draws_from(half, 1)) == "distribution"
    assert rule_of(Rows(probs, None, None), draws_from(probs[0], 1)) is None
    cut = Rows(probs, torch.tensor([32]), None)
    assert rule_of(cut, draws_from(half, 1)) is None, "any 32 of the equal tokens will do"


@pytest.mark.parametrize("name", ["tokens", "blocks", "lanes"])
def test_lost_tiles_and_lanes_are_seen(name: str) -> None:
    rows = row_of(6, None, None)
    weights, ids = public_filter(rows), torch.arange(400)
    lost = {"tokens": ids == int(weights.argmax()), "blocks": ids >= 375, "lanes": ids % 16 == 3}[name]
    assert rule_of(rows, draws_from(torch.where(lost, 0.0, weights), 1, calls=700)) == "distribution"

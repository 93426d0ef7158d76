"""Standings of draws: uniform for an exact sampler over any rows; greedy and uniform ones are soon found."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling_cases import public_filter, row_of

from fib_core.device.ranks import LEVEL, finding_on, standings
from fib_core.device.sampling import MASK_SLACK, Rows, boundaries, thresholds

FILTERS = [(None, None), (40, None), (None, 0.9), (400, 0.5), (1, None)]


def rows_of(seed: int, batch: int, top_k: int | None, top_p: float | None) -> Rows:
    each = [row_of(seed * 1000 + number, top_k, top_p) for number in range(batch)]
    filters = [None if value is None else torch.tensor([value] * batch) for value in (top_k, top_p)]
    return Rows(torch.cat([row.probs for row in each]), *filters)


def weights_of(rows: Rows) -> torch.Tensor:
    return torch.stack([public_filter(rows.only(row)) for row in range(len(rows.probs))])


def judged(rows: Rows, weights: torch.Tensor, seed: int, calls: int = 8) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    _, masses = boundaries(rows, MASK_SLACK)
    drawn = [torch.multinomial(weights, 1, generator=generator)[:, 0] for _ in range(calls)]
    return torch.cat([standings(rows, masses, draws, generator) for draws in drawn])


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), chosen=st.sampled_from(FILTERS))
def test_exact_draws_of_many_rows_are_accepted_and_stand_uniformly(
    seed: int, chosen: tuple[int | None, float | None]
) -> None:
    rows = rows_of(seed, 8, *chosen)
    values = judged(rows, weights_of(rows), seed, calls=64)
    assert float(values.min()) >= 0
    assert float(values.max()) <= 1 + 1e-12
    assert finding_on(values) is None
    assert finding_on(values, 1e-9) is None
    assert abs(float(values.mean()) - 0.5) < 6 * (12 * len(values)) ** -0.5


@pytest.mark.parametrize("chosen", FILTERS[:4])
def test_greedy_and_uniform_samplers_are_found(chosen: tuple[int | None, float | None]) -> None:
    rows = rows_of(3, 32, *chosen)
    weights = weights_of(rows)
    greedy = torch.zeros_like(weights).scatter(1, weights.argmax(1, keepdim=True), 1.0)
    for wrong in (greedy, (weights > 0).double(), weights.roll(1, 0) if chosen == (None, None) else greedy):
        finding = finding_on(judged(rows, wrong, 3))
        assert finding is not None
        assert finding.rule == "distribution"


def test_ties_at_the_boundary_stand_together_whichever_the_sampler_keeps() -> None:
    probs = torch.tensor([[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]], dtype=torch.float64).expand(32, -1)
    rows = Rows(probs, torch.full((32,), 3), None)
    for tied in (2, 5):
        weights = torch.tensor([0.4, 0.2, 0, 0, 0, 0], dtype=torch.float64).expand(32, -1).clone()
        weights[:, tied] = 0.1
        assert finding_on(judged(rows, weights, tied, calls=64)) is None
    assert finding_on(judged(rows, probs, 1, calls=64)) is not None, "all four kept: one token too many"


def test_no_draws_are_no_finding_and_the_bound_holds_for_few() -> None:
    assert finding_on(torch.zeros(0, dtype=torch.float64)) is None
    assert finding_on(torch.zeros(5, dtype=torch.float64)) is None, "2 exp(-10) is above the level"
    assert finding_on(torch.zeros(9, dtype=torch.float64), LEVEL) is not None


def test_boundaries_are_the_thresholds() -> None:
    for chosen in FILTERS:
        rows = rows_of(5, 8, *chosen)
        limits, masses = boundaries(rows, MASK_SLACK)
        assert torch.equal(limits, thresholds(rows, MASK_SLACK))
        kept = torch.where(weights_of(rows) > 0, rows.probs, 0.0).sum(1)
        assert torch.allclose(masses, kept, atol=1e-9)

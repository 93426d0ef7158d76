"""Draws must be independent: repeats under different seeds, shared random numbers, counters and replays are found."""

import torch
from sampling_cases import draws_from, public_filter, row_of, rule_of

from fib_core.device.sampling import distribution_test, repeated_stream


def test_equal_draws_under_different_seeds_are_rejected_unless_nothing_else_is_possible() -> None:
    rows = row_of(5, 40, None)
    once = draws_from(public_filter(rows), 5, calls=1)
    assert rule_of(rows, once.expand(500, -1)) == "distribution"
    greedy = row_of(5, 1, None)
    assert rule_of(greedy, greedy.probs.argmax().expand(500, 24)) is None


def test_draws_that_repeat_in_any_pattern_are_rejected() -> None:
    rows = row_of(5, 40, None)
    drawn = draws_from(public_filter(rows), 5, calls=400, batch=16)
    assert rule_of(rows, drawn) is None, "the control"
    assert rule_of(rows, torch.cat([drawn[:200], drawn[:200]])) == "distribution", "a replay of the first half"
    assert rule_of(rows, drawn[:, :1].expand(-1, 16)) == "distribution", "one random number for all rows"
    mixed = torch.where(torch.rand(400, 16, generator=torch.Generator().manual_seed(1)) < 0.3, drawn[0], drawn)
    assert rule_of(rows, mixed) == "distribution", "three draws in ten ignore the seed"


def test_a_sampler_that_counts_instead_of_drawing_is_too_even() -> None:
    rows = row_of(5, 100, None)
    weights = public_filter(rows)
    points = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    order = torch.randperm(20_000, generator=torch.Generator().manual_seed(1))
    counted = torch.searchsorted(weights.cumsum(0), points)[order]
    result = distribution_test(rows, 0, counted.reshape(-1, 16), torch.Generator().manual_seed(1))
    assert result.finding is not None
    assert "too even" in result.finding.reason


def test_a_private_seed_shows_in_the_second_process() -> None:
    rows = row_of(5, 40, None)
    first, second = (draws_from(public_filter(rows), seed, calls=30) for seed in (1, 2))
    assert repeated_stream(rows, 0, first, second) is None
    assert repeated_stream(rows, 0, first, first.clone()) is not None
    greedy = row_of(5, 1, None)
    same = draws_from(public_filter(greedy), 1, calls=30)
    assert repeated_stream(greedy, 0, same, same) is None, "nothing else is possible"

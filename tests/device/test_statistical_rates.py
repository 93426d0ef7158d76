"""The statistical rules err as often as they say: levels and powers by simulation, within exact binomial bounds."""

import numpy as np
import pytest
import torch
from scipy.stats import beta

from fib_core.device import chi_square
from fib_core.device.clusters import cluster
from fib_core.device.draw_power import distinct, draws_for, power_at
from fib_core.device.sampling import (
    FALSE_REJECTION,
    Rows,
    distribution_test,
    mask_finding,
    needed_draws,
    repeated_stream,
    thresholds,
)
from fib_core.device.support import MASK_SLACK, support
from schemas.numerics import default_rule

LEVEL = 1e-2
MISS = 1e-5  # a right rate falls outside its interval this often


def interval(count: int, trials: int) -> tuple[float, float]:
    """Clopper-Pearson."""
    low = beta.ppf(MISS / 2, count, trials - count + 1) if count else 0.0
    high = beta.ppf(1 - MISS / 2, count + 1, trials - count) if count < trials else 1.0
    return float(low), float(high)


def _rows(vocab: int, top_k: int | None = None, top_p: float | None = None, seed: int = 1) -> Rows:
    noise = torch.randn(1, vocab, generator=torch.Generator().manual_seed(seed))
    filters = [None if value is None else torch.tensor([value]) for value in (top_k, top_p)]
    return Rows(torch.softmax(noise * 2, dim=1).double(), *filters)


def dense(rows: Rows) -> torch.Tensor:
    found = support(rows, 0)
    return torch.zeros(found.vocab, dtype=torch.float64).index_put((found.ids,), found.weights)


def draw(weights: torch.Tensor, count: int, generator: torch.Generator, batch: int = 64) -> torch.Tensor:
    calls = -(-count // batch)
    drawn = torch.multinomial(weights, calls * batch, replacement=True, generator=generator)
    return drawn.reshape(calls, batch)


def spread(weights: torch.Tensor, generator: torch.Generator, tvd: float = 0.05) -> torch.Tensor:
    """Half of the tokens up, half down, at random, by the same share: the distortion that pooling hides best."""
    up = torch.rand(len(weights), generator=generator) < 0.5
    lifted = torch.where(up, weights, 0.0)
    lowered = weights - lifted
    return lifted * (1 + tvd / lifted.sum()) + lowered * (1 - tvd / lowered.sum())


def heated(weights: torch.Tensor, tvd: float = 0.05) -> torch.Tensor:
    """A temperature too high, until ``tvd`` of the mass has moved."""
    low, high = 1.0, 20.0
    for _ in range(20):
        middle = (low + high) / 2
        other = weights ** (1 / middle) * (weights > 0)
        other = other / other.sum()
        low, high = (low, middle) if float((other - weights).abs().sum()) / 2 > tvd else (middle, high)
    return other


SHAPES = {
    "16 even cells": np.full(16, 1 / 16),
    "40 cells that halve": 0.93 ** np.arange(40) / (0.93 ** np.arange(40)).sum(),
    "100 cells expected 40 times": np.full(100, 0.01),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tail", ["uneven", "even"])
def test_the_chi_square_rule_rejects_exact_counts_at_its_level(shape: str, tail: str) -> None:
    masses, draws, trials = SHAPES[shape], 4000, 6000
    counts = torch.from_numpy(np.random.default_rng(3).multinomial(draws, masses, size=trials)).double()
    wanted = torch.from_numpy(masses) * draws
    found = [chi_square.p_values(row, wanted)[1 if tail == "uneven" else 2] for row in counts]
    low, high = interval(sum(p < LEVEL for p in found), trials)
    assert low <= LEVEL <= high


def test_a_wrong_tail_would_be_noticed() -> None:
    """The negative control: the same simulation tells a level from a third and from three times of it."""
    masses, draws, trials = SHAPES["16 even cells"], 4000, 6000
    counts = torch.from_numpy(np.random.default_rng(3).multinomial(draws, masses, size=trials)).double()
    wanted = torch.from_numpy(masses) * draws
    low, high = interval(sum(chi_square.p_values(row, wanted)[1] < LEVEL for row in counts), trials)
    assert low > LEVEL / 3
    assert high < LEVEL * 3


@pytest.mark.parametrize("masses", [(0.99, 0.01), (0.5, 0.3, 0.199, 0.001)])
def test_few_cells_are_held_to_a_bound_that_never_exceeds_its_level(masses: tuple[float, ...]) -> None:
    counts = torch.from_numpy(np.random.default_rng(4).multinomial(10_000, masses, size=6000)).double()
    wanted = torch.tensor(masses, dtype=torch.float64) * 10_000
    rejected = sum(chi_square.p_values(row, wanted)[1] < LEVEL for row in counts)
    assert interval(rejected, 6000)[0] <= LEVEL
    assert chi_square.p_values(wanted + torch.linspace(600, -600, len(masses)), wanted)[1] < 1e-7


@pytest.mark.parametrize("top_k", [None, 40])
def test_all_tests_of_a_row_together_reject_an_exact_sampler_at_most_at_their_level(top_k: int | None) -> None:
    rows, generator, trials, alpha = _rows(400, top_k), torch.Generator().manual_seed(5), 400, 0.1
    weights = dense(rows)
    rejected = 0
    for _ in range(trials):
        drawn = draw(weights, 2048, generator)
        rejected += distribution_test(rows, 0, drawn, generator, alpha).finding is not None
    low, _ = interval(rejected, trials)
    assert low <= alpha
    assert rejected > 0, "a test that never rejects at a level of a tenth tests nothing"


def test_agreement_between_independent_streams_is_found_at_most_at_its_level() -> None:
    rows, generator, alpha = _rows(400, 40), torch.Generator().manual_seed(6), 0.5
    weights = dense(rows)
    found = [
        repeated_stream(rows, 0, draw(weights, 640, generator), draw(weights, 640, generator), alpha) is not None
        for _ in range(1500)
    ]
    low, high = interval(sum(found), len(found))
    assert low <= alpha * 0.1, "the share of the level that is kept for repeats"
    assert high >= alpha * 0.1 * 0.5, "and not far below it: the binomial is discrete, not dead"


@pytest.mark.parametrize("filters", [(40, None), (None, 0.9), (None, None)])
def test_the_needed_draws_attain_the_power_they_are_computed_for(filters: tuple[int | None, float | None]) -> None:
    """At a power low enough to be measured: same code, wanted power 0.9."""
    rows, generator, trials, alpha = _rows(400, *filters), torch.Generator().manual_seed(7), 120, 1e-2
    weights, tokens = dense(rows), distinct(support(rows, 0))
    level = alpha * 0.02
    count = draws_for(tokens, level, wanted=0.9)
    assert 0.9 <= power_at(tokens, count, level) < 0.92
    rejected = 0
    for _ in range(trials):
        drawn = draw(spread(weights, generator), count, generator)
        rejected += distribution_test(rows, 0, drawn, generator, alpha).finding is not None
    assert interval(rejected, trials)[1] >= 0.9, f"{rejected} of {trials}"
    exact = sum(
        distribution_test(rows, 0, draw(weights, count, generator), generator, alpha).finding is not None
        for _ in range(trials)
    )
    assert interval(exact, trials)[0] <= alpha


def _judged(rows: Rows, weights: torch.Tensor, count: int, generator: torch.Generator) -> str | None:
    drawn = draw(weights, count, generator, batch=256)
    finding = mask_finding(rows, thresholds(rows, MASK_SLACK), drawn.reshape(-1, 1))
    finding = finding or distribution_test(rows, 0, drawn, generator).finding
    return finding.rule if finding else None


VOCABULARIES = (128_256, 151_936, 202_048)


@pytest.mark.parametrize("vocab", VOCABULARIES)
def test_at_real_vocabularies_an_exact_sampler_passes_and_distortions_fail(vocab: int) -> None:
    """Top-k 50 at the draws it needs, the contract's level."""
    rows, generator = _rows(vocab, 50), torch.Generator().manual_seed(vocab)
    weights, count = dense(rows), needed_draws(rows, 0)
    for _ in range(4):
        assert _judged(rows, weights, count, generator) is None
    for distorted in ((weights > 0).double(), spread(weights, generator), heated(weights)):
        assert _judged(rows, distorted, count, generator) == "distribution"


@pytest.mark.slow
@pytest.mark.parametrize("vocab", VOCABULARIES)
@pytest.mark.parametrize("filters", [(50, None), (None, 0.9), (50, 0.9), (None, None)])
def test_at_real_vocabularies_every_filter_is_calibrated(
    vocab: int, filters: tuple[int | None, float | None]
) -> None:
    rows, generator = _rows(vocab, *filters), torch.Generator().manual_seed(vocab)
    weights, count = dense(rows), needed_draws(rows, 0)
    trials = 20
    for distorted in (spread(weights, generator), heated(weights), (weights > 0).double()):
        assert all(_judged(rows, distorted, count, generator) == "distribution" for _ in range(trials))
    assert all(_judged(rows, weights, count, generator) is None for _ in range(trials))


@pytest.mark.slow
def test_power_0_999_is_0_999() -> None:
    """Ten thousand distorted samplers at the contract's level and the draws computed for it."""
    rows, generator, trials = _rows(400, 20), torch.Generator().manual_seed(8), 10_000
    weights, count = dense(rows), needed_draws(rows, 0)
    missed = sum(_judged(rows, spread(weights, generator), count, generator) is None for _ in range(trials))
    assert interval(missed, trials)[0] <= 1e-3, f"{missed} of {trials}"
    assert FALSE_REJECTION == 1e-6


@pytest.mark.parametrize("shape", [(200, 4), (4, 200), (50, 16), (1000, 128)])
def test_scattered_mismatches_at_the_allowed_rate_are_no_cluster(shape: tuple[int, int]) -> None:
    rule, generator = default_rule("out", "bfloat16", "moe"), torch.Generator().manual_seed(9)
    found = [cluster(torch.rand(shape, generator=generator) < 0.01, rule) for _ in range(60)]
    assert not any(found)


@pytest.mark.parametrize("shape", [(400, 4), (4, 400), (200, 8), (8, 200), (64, 64), (2000, 2)])
@pytest.mark.parametrize("along", ["row", "column"])
def test_five_percent_of_garbage_rows_or_dead_columns_is_a_cluster(shape: tuple[int, int], along: str) -> None:
    """Alone, without the matched ratio: what a definition with a matched ratio of 0.95 relies on."""
    rule = default_rule("out", "bfloat16", "moe").model_copy(update={"matched_ratio_min": 0.95})
    wrong = torch.zeros(shape, dtype=torch.bool)
    lines = shape[0] if along == "row" else shape[1]
    if lines < 20:
        pytest.skip("one of fewer than twenty lines is more than five percent: the matched ratio judges it")
    chosen = torch.randperm(lines, generator=torch.Generator().manual_seed(1))[: lines // 20]
    if along == "row":
        wrong[chosen] = True
    else:
        wrong[:, chosen] = True
    assert cluster(wrong, rule) is not None

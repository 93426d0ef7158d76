"""Statistics: exact against brute force, honest about few rounds, calibrated in simulation."""

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from fib_core.decision.profiles import RULES, Rules
from fib_core.decision.stats import (
    hodges_lehmann,
    holm,
    interval,
    lower_bound,
    signed_rank_p,
    standard_error,
    walsh_averages,
)

small = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9)
finite = st.lists(st.floats(-1, 1), min_size=1, max_size=12)


def brute_force_p(differences: list[float]) -> float:
    """Enumerate all sign patterns with mid-ranks; zeros keep their rank and are taken as negative."""
    sizes = [abs(value) for value in differences]
    ranks = [sum(other < size for other in sizes) + (sum(other == size for other in sizes) + 1) / 2 for size in sizes]
    observed = sum(rank for rank, value in zip(ranks, differences, strict=True) if value > 0)
    patterns = list(itertools.product((0, 1), repeat=len(sizes)))
    hits = sum(sum(r for r, s in zip(ranks, signs, strict=True) if s) >= observed for signs in patterns)
    return hits / len(patterns)


@given(small)
def test_the_exact_p_equals_brute_force_ties_and_zeros_included(differences: list[float]) -> None:
    assert signed_rank_p(differences) == pytest.approx(brute_force_p(differences))


def test_without_ties_the_p_is_scipys() -> None:
    rng = random.Random(1)
    for count in (5, 8, 12, 20):
        sample = [rng.gauss(0.3, 1) for _ in range(count)]
        expected = wilcoxon(sample, alternative="greater", method="exact").pvalue
        assert signed_rank_p(sample) == pytest.approx(expected)


@given(finite)
def test_a_larger_gain_is_never_less_significant(differences: list[float]) -> None:
    assert signed_rank_p([value + 3 for value in differences]) <= signed_rank_p(differences)


@given(st.integers(1, 20))
def test_winning_every_round_gives_the_smallest_p(rounds: int) -> None:
    assert signed_rank_p([0.1 + index for index in range(rounds)]) == 0.5**rounds


def test_no_rounds_and_all_ties_prove_nothing() -> None:
    assert signed_rank_p([]) == 1.0
    assert signed_rank_p([0.0] * 8) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_never_lowers_a_p_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    assert min(adjusted) == min(1.0, len(p_values) * min(p_values))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [adjusted[i] for i in order] == sorted(adjusted)


def test_holm_by_hand() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])


@given(finite, st.floats(-2, 2))
def test_the_estimate_moves_with_the_data(differences: list[float], shift: float) -> None:
    moved = hodges_lehmann([value + shift for value in differences])
    assert moved == pytest.approx(hodges_lehmann(differences) + shift, abs=1e-9)
    assert hodges_lehmann([-value for value in differences]) == pytest.approx(-hodges_lehmann(differences))


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=14))
def test_the_interval_contains_the_estimate_and_the_one_sided_bound_lies_inside(differences: list[float]) -> None:
    low, high = interval(differences)
    assert low <= hodges_lehmann(differences) <= high
    assert low <= lower_bound(differences) <= hodges_lehmann(differences)


def test_the_lower_bound_is_where_the_exact_test_stops_rejecting() -> None:
    rng = random.Random(11)
    for count in (5, 6, 8, 9, 11) * 6:
        differences = [rng.gauss(0, 1) for _ in range(count)]
        averages = walsh_averages(differences)
        accepted = [shift for shift in averages if signed_rank_p([v - shift - 1e-9 for v in differences]) > 0.05]
        assert lower_bound(differences) == min(accepted)


def test_five_rounds_support_no_two_sided_interval_and_that_is_said() -> None:
    assert interval([0.1, 0.2, 0.3, 0.4, 0.5]) == (-math.inf, math.inf)
    assert math.isfinite(standard_error([0.1, 0.2, 0.3, 0.4, 0.5]))
    assert standard_error([0.1]) == math.inf
    assert lower_bound([0.1, 0.2, 0.3]) == -math.inf


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_every_planned_look_has_rounds_enough_for_its_finalists_to_win(rules: Rules) -> None:
    for look in rules.looks:
        best = [signed_rank_p([0.1 + index for index in range(look.rounds)])] * rules.finalist_limit
        assert max(holm(best)) < look.alpha


def heavy_tailed(rng: random.Random, centre: float) -> float:
    """A round's log-ratio: normal, one in twenty with ten times the spread."""
    return centre + rng.gauss(0, 0.10 if rng.random() < 0.05 else 0.01)


def test_under_the_null_the_test_rejects_no_more_often_than_it_says() -> None:
    rng, trials, alpha = random.Random(7), 3000, 0.05
    rejected = sum(signed_rank_p([heavy_tailed(rng, 0.0) for _ in range(8)]) < alpha for _ in range(trials))
    assert rejected / trials <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / trials)
    assert rejected > 0, "a test that never rejects is no test"


@pytest.mark.parametrize("rounds", [8, 12])
def test_the_interval_covers_the_truth_as_often_as_it_says(rounds: int) -> None:
    rng, trials = random.Random(rounds), 1500
    covered = 0
    for _ in range(trials):
        low, high = interval([heavy_tailed(rng, 0.2) for _ in range(rounds)])
        covered += low <= 0.2 <= high
    assert 0.95 - 3 * math.sqrt(0.95 * 0.05 / trials) <= covered / trials <= 0.995


def test_the_standard_error_is_the_spread_of_the_estimate() -> None:
    rng, trials = random.Random(3), 600
    samples = [[rng.gauss(0, 0.02) for _ in range(12)] for _ in range(trials)]
    estimates = [hodges_lehmann(sample) for sample in samples]
    spread = math.sqrt(sum(value * value for value in estimates) / trials)
    stated = sum(standard_error(sample) for sample in samples) / trials
    assert stated == pytest.approx(spread, rel=0.15)


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_a_gain_of_fifteen_percent_shows_in_eight_rounds(seed: int) -> None:
    rng = random.Random(seed)
    sample = [math.log(1.15) + rng.gauss(0, 0.02) for _ in range(8)]
    assert signed_rank_p(sample) == 0.5**8
    assert signed_rank_p([-value for value in sample]) == 1.0


def test_holm_holds_the_family_error_although_finalists_share_their_incumbent() -> None:
    rng, trials, alpha = random.Random(5), 1500, 0.05
    wrong = 0
    for _ in range(trials):
        incumbent = [heavy_tailed(rng, 0.0) for _ in range(8)]
        finalists = [[old - heavy_tailed(rng, 0.0) for old in incumbent] for _ in range(2)]
        wrong += min(holm([signed_rank_p(one) for one in finalists])) < alpha
    assert wrong / trials <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / trials)

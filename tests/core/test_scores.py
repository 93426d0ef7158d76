"""The formulas of scores: what they promise for any numbers, and the numbers of the notes."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from fib_core.account.scores import (
    Call,
    Trial,
    amdahl,
    area,
    call_us,
    discoveries,
    fast_p,
    overhead_share,
    served_calls,
    served_time,
    weighted_speedup,
)
from fib_core.errors import ContractError

RATIOS = st.none() | st.floats(0.01, 20)
WEIGHTS = st.floats(0.01, 100)
TRIALS = st.lists(st.builds(Trial, RATIOS, WEIGHTS), min_size=1, max_size=30)
LIMITS = st.floats(0, 25)
TIMES = st.floats(0.1, 1e6)
CALLS = st.lists(st.builds(Call, WEIGHTS, TIMES, TIMES, st.booleans()), min_size=1, max_size=20)


@given(TRIALS, st.floats(0.01, 25))
def test_the_area_equals_numeric_integration_of_fast_p(trials: list[Trial], to: float) -> None:
    # Between two neighbouring ratios fast_p is constant: the middle of each piece tells it all.
    edges = sorted({0.0, to, *(item.ratio for item in trials if item.ratio is not None and item.ratio < to)})
    pieces = [(high - low) * (fast_p(trials, (low + high) / 2) or 0.0) for low, high in pairwise(edges)]
    assert area(trials, to) == pytest.approx(math.fsum(pieces), rel=1e-9, abs=1e-12)


def test_a_grid_would_miss_what_the_exact_area_counts() -> None:
    """The negative control of the integral: a coarse grid is off, a finer one comes nearer."""
    trials = [Trial(1.004), Trial(2.996), Trial(None)]
    exact = area(trials, 4.0)
    assert exact == pytest.approx(4.0 / 3)
    grids = [math.fsum((fast_p(trials, step * 4 / n) or 0) * 4 / n for step in range(n)) for n in (4, 40000)]
    assert abs(grids[0] - 4 / 3) > 0.1
    assert abs(grids[1] - 4 / 3) < 1e-3


@given(TRIALS, LIMITS, LIMITS)
def test_fast_p_never_rises_with_p(trials: list[Trial], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert (fast_p(trials, low) or 0) >= (fast_p(trials, high) or 0)


@given(TRIALS, st.floats(0.01, 20))
def test_exactly_p_times_as_fast_is_not_faster_than_p(trials: list[Trial], p: float) -> None:
    alone = [*trials, Trial(p, 1.0)]
    below = math.nextafter(p, 0)
    weight = math.fsum(item.weight for item in alone)
    at_p = math.fsum(item.weight for item in alone if item.ratio == p)
    assert (fast_p(alone, below) or 0) - (fast_p(alone, p) or 0) == pytest.approx(at_p / weight, abs=1e-12)


@given(TRIALS, LIMITS)
def test_a_failure_counts_as_not_fast_at_any_p(trials: list[Trial], p: float) -> None:
    share, weight = fast_p(trials, p) or 0.0, math.fsum(item.weight for item in trials)
    with_failure = fast_p([*trials, Trial(None, weight)], p)
    assert with_failure == pytest.approx(share / 2)
    assert area([*trials, Trial(None, weight)], p + 1) == pytest.approx((area(trials, p + 1) or 0) / 2)


@given(TRIALS)
def test_at_zero_it_is_the_share_of_correct_ones_timed_or_not(trials: list[Trial]) -> None:
    untimed = [*trials, Trial(0.0, 1.0)]
    weight = math.fsum(item.weight for item in untimed)
    correct = math.fsum(item.weight for item in untimed if item.ratio is not None)
    assert fast_p(untimed, 0) == pytest.approx(correct / weight)
    assert area([Trial(0.0)], 4) == 0


@given(TRIALS, CALLS, LIMITS, st.floats(0.001, 1000))
def test_weights_have_no_scale(trials: list[Trial], calls: list[Call], p: float, scale: float) -> None:
    more = [item._replace(weight=item.weight * scale) for item in trials]
    often = [item._replace(weight=item.weight * scale) for item in calls]
    assert fast_p(more, p) == pytest.approx(fast_p(trials, p))
    assert area(more, p + 1) == pytest.approx(area(trials, p + 1))
    for formula in (weighted_speedup, served_time, served_calls, call_us):
        assert formula(often) == pytest.approx(formula(calls))


@given(CALLS, st.floats(0.01, 100))
def test_the_weighted_speedup_of_one_common_gain_is_that_gain(calls: list[Call], gain: float) -> None:
    faster = [item._replace(now_us=item.before_us / gain) for item in calls]
    assert weighted_speedup(faster) == pytest.approx(gain)
    assert weighted_speedup([item._replace(now_us=item.before_us) for item in calls]) == pytest.approx(1.0)


@given(CALLS)
def test_shares_of_traffic_lie_between_none_and_all(calls: list[Call]) -> None:
    for share in (served_time, served_calls):
        assert 0 <= (share(calls) or 0) <= 1 + 1e-12
        assert share([item._replace(served=True) for item in calls]) == pytest.approx(1.0)
        assert share([item._replace(served=False) for item in calls]) == 0.0


def test_served_time_weighs_by_time_and_served_calls_by_calls() -> None:
    calls = [Call(9, 1, 1, served=True), Call(1, 91, 91, served=False)]
    assert served_calls(calls) == pytest.approx(0.9)
    assert served_time(calls) == pytest.approx(0.09)


def test_the_figures_of_the_notes_come_out() -> None:
    figure = [Trial(0.5), Trial(1.0), Trial(2.0), Trial(None)]
    assert area(figure, math.inf) == 0.875
    assert (fast_p(figure, 0), fast_p(figure, 1)) == (0.75, 0.25)
    calls = [Call(1, 1, 0.1), Call(1, 100, 125)]
    assert weighted_speedup(calls) == pytest.approx(101 / 125.1)
    assert amdahl(0.1, 2.0, 0.01) == pytest.approx(1 / 0.96)


@given(st.floats(0, 1), st.floats(0.01, 100), st.floats(0, 1))
def test_the_end_to_end_gain_stays_within_amdahls_limits(share: float, speedup: float, delta: float) -> None:
    assert amdahl(0.0, speedup) == 1.0
    assert amdahl(1.0, speedup) == pytest.approx(speedup)
    assert amdahl(share, 1.0, delta) == pytest.approx(1 / (1 + delta))
    bound = 1 / (1 - share) if share < 1 else math.inf
    assert amdahl(share, max(speedup, 1.0), delta) <= bound * (1 + 1e-9)
    gained, spent = share * (1 - 1 / speedup), delta
    if abs(gained - spent) > 1e-9:
        assert (amdahl(share, speedup, delta) > 1) == (gained > spent)


def test_dispatch_overhead_can_turn_a_gain_into_a_loss() -> None:
    share, speedup, each_us = 0.2, 1.25, 20.0
    assert amdahl(share, speedup) > 1
    assert amdahl(share, speedup, overhead_share(share, 3.0, each_us)) > 1
    assert amdahl(share, speedup, overhead_share(share, 5.0, each_us)) < 1
    assert overhead_share(share, 4.0, each_us) == pytest.approx(share * (1 - 1 / speedup))


def test_nothing_to_count_is_no_score() -> None:
    assert fast_p([], 1.0) is None
    assert area([], 1.0) is None
    assert weighted_speedup([]) is None
    assert served_time([Call(0.0, 1.0, 1.0)]) is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda: fast_p([Trial(1.0)], -0.1),
        lambda: fast_p([Trial(1.0)], math.nan),
        lambda: area([Trial(1.0)], 0.0),
        lambda: amdahl(1.1, 2.0),
        lambda: amdahl(0.5, 0.0),
        lambda: amdahl(0.5, 2.0, -0.1),
        lambda: overhead_share(0.5, 1.0, 0.0),
    ],
)  # fmt: skip
def test_a_question_without_a_meaning_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(ContractError):
        ask()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_adjusted_p_values_are_those_of_benjamini_and_hochberg(p_values: list[float]) -> None:
    assert discoveries(p_values) == pytest.approx(list(scipy.stats.false_discovery_control(p_values)))
    assert all(adjusted >= p * (1 - 1e-12) for adjusted, p in zip(discoveries(p_values), p_values, strict=True))

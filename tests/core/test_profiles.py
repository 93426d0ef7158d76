"""The two profiles keep within the contract's figures."""

import pytest

from fib_core.decision.profiles import FULL, QUICK


def test_quick_is_the_contracts_quick() -> None:
    assert QUICK.timed_limit is not None
    assert 3 <= QUICK.timed_limit <= 6, "at least one train, one holdout and one stress workload"
    assert (QUICK.finalist_limit, QUICK.rounds, len(QUICK.looks), QUICK.min_effect) == (2, 8, 1, 0.10)


def test_full_is_the_contracts_full_and_stricter_about_noise() -> None:
    assert [(look.rounds, look.alpha) for look in FULL.looks] == [(10, 0.02), (20, 0.03)]
    assert (FULL.finalist_limit, FULL.min_effect, FULL.timed_limit) == (3, 0.01, None)
    assert FULL.noise_factor >= 2, "of A/A standard errors: the contract's figure is the least"


def test_near_ties_may_be_confirmed_in_full_and_in_quick_nothing_below_half_its_effect() -> None:
    assert pytest.approx(0.97) == FULL.screen_ratio_min
    assert QUICK.screen_ratio_min == 1.05

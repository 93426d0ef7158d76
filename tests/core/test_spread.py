"""The A/A spread: pooled from controls of the same worker, clock and length; never from a control counted twice."""

import math
import random
from dataclasses import replace
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core import confirm
from fib_core.decision.profiles import FULL, QUICK
from fib_core.decision.spread import Worker, length_class, origin_of, spread
from fib_core.decision.stats import standard_error
from schemas.decision import Decision
from tests.core.road import walk
from tests.core.world import DEVICE, World, gemm, solution

DEFINITION = gemm()
WALKED = walk(World({"old": 1.0, "bit": 0.97}, noise=0.004), [solution("bit", DEFINITION)], rules=FULL)
FIRST = WALKED.decisions[0]
WORKER = Worker(("gpu-1",), "cupti", "full", 20.0)


def control(rng: random.Random, noise: float, rounds: int = 20) -> tuple[float, ...]:
    return tuple(rng.gauss(0, noise) for _ in range(rounds))


def earlier(logs: tuple[float, ...], number: int = 1, **changes: object) -> Decision:
    assert FIRST.control is not None
    estimate = FIRST.control.model_copy(update={"log_ratios": logs, "standard_error": standard_error(logs)})
    facts = {"device_ids": ("gpu-1",), "timer": "cupti", "profile": "full", "control_us": 30.0, "campaign": number}
    return FIRST.model_copy(update=facts | {"control": estimate} | changes)


def test_a_control_alone_gives_its_own_standard_error() -> None:
    logs = control(random.Random(1), 0.01, 10)
    found = spread(logs, WORKER, 10)
    assert found is not None
    assert found.standard_error == pytest.approx(standard_error(logs))
    assert (found.estimates, found.rounds, found.length) == (1, 10, "16-64 us")


def test_more_rounds_make_the_estimate_of_the_same_worker_sharper_by_their_root() -> None:
    logs = control(random.Random(2), 0.01, 10)
    ten, forty = spread(logs, WORKER, 10), spread(logs, WORKER, 40)
    assert ten is not None
    assert forty is not None
    assert forty.standard_error == pytest.approx(ten.standard_error / 2)


def test_earlier_controls_bring_the_spread_nearer_to_the_truth() -> None:
    rng = random.Random(3)
    truth = 0.01 / math.sqrt(10)
    alone, pooled = [], []
    for _ in range(60):
        own = control(rng, 0.01, 10)
        history = [earlier(control(rng, 0.01), number) for number in range(1, 9)]
        one, many = spread(own, WORKER, 10), spread(own, WORKER, 10, history)
        assert one is not None
        assert many is not None
        assert (many.estimates, many.rounds) == (9, 170)
        alone.append(abs(one.standard_error - truth))
        pooled.append(abs(many.standard_error - truth))
    assert mean(pooled) < mean(alone) / 2


@pytest.mark.parametrize(
    "foreign",
    [
        {"device_ids": ("gpu-2",)}, {"device_ids": ("gpu-1", "gpu-2")}, {"timer": "cuda_event"}, {"profile": "quick"},
        {"control_us": 64.5}, {"control_us": 15.9}, {"control_us": None}, {"control": None},
        {"causes": ("drift: 10 %",)},
    ],
)  # fmt: skip
def test_what_another_worker_clock_profile_or_length_measured_says_nothing_here(foreign: dict[str, object]) -> None:
    own = control(random.Random(4), 0.01, 10)
    other = earlier(control(random.Random(5), 0.2), **foreign)
    assert spread(own, WORKER, 10, [other]) == spread(own, WORKER, 10)
    assert spread(own, WORKER, 10, [earlier(control(random.Random(5), 0.2))]) != spread(own, WORKER, 10)


def test_this_very_measurement_is_not_counted_twice() -> None:
    logs = control(random.Random(6), 0.01, 10)
    again = earlier(logs, 1)
    assert spread(logs, WORKER, 10, [again], origin_of(again)) == spread(logs, WORKER, 10)
    other = spread(logs, WORKER, 10, [earlier(logs, 2)], origin_of(again))
    assert other is not None
    assert other.estimates == 2


def test_nothing_measured_is_no_spread_rather_than_none_at_all() -> None:
    assert spread((), None, 10) is None
    assert spread((0.01,), WORKER, 10) is None
    assert spread((), WORKER, 10, [earlier(control(random.Random(7), 0.01))]) is not None


@given(st.floats(0.01, 1e6))
def test_a_length_class_holds_its_time_and_spans_a_factor_of_four(time_us: float) -> None:
    low, high = (float(part) for part in length_class(time_us).removesuffix(" us").split("-"))
    assert low * (1 - 1e-5) <= time_us <= high * (1 + 1e-5)
    assert high / low == pytest.approx(4, rel=1e-4)


def judged_with(history: list[Decision]) -> list[Decision]:
    return confirm.decide(WALKED.contest, WALKED.rounds, FULL, DEVICE, history)


def noisy(decision: Decision, noise: float, number: int) -> Decision:
    assert decision.control is not None
    logs = control(random.Random(number), noise)
    estimate = decision.control.model_copy(update={"log_ratios": logs, "standard_error": standard_error(logs)})
    return decision.model_copy(update={"control": estimate, "campaign": number})


def test_a_worker_that_is_known_to_be_noisy_asks_for_more_and_the_record_says_why() -> None:
    assert {item.verdict for item in WALKED.decisions} == {"promoted"}
    history = [noisy(item, 0.1, number) for item in WALKED.decisions for number in range(1, 6)]
    for before, after in zip(WALKED.decisions, judged_with(history), strict=True):
        assert (after.verdict, after.failed) == ("kept_incumbent", ("min_effect",))
        assert after.spread is not None
        assert after.spread.estimates > 5
        assert after.min_effect == pytest.approx(3 * after.spread.standard_error)
        assert before.min_effect < 0.02 < after.min_effect


def test_a_quiet_history_changes_nothing_but_the_record() -> None:
    history = [noisy(item, 0.004, number) for item in WALKED.decisions for number in range(1, 6)]
    after = judged_with(history)
    assert [item.verdict for item in after] == [item.verdict for item in WALKED.decisions]
    assert all(item.spread is not None and item.spread.estimates > 5 for item in after)


def test_decisions_that_are_handed_back_to_themselves_stay_as_they_are() -> None:
    for decision in WALKED.decisions:
        (same,) = [item for item in judged_with([decision]) if item.key == decision.key]
        assert same == decision


def test_the_order_of_earlier_decisions_does_not_matter() -> None:
    history = [noisy(item, 0.02, number) for item in WALKED.decisions for number in range(1, 4)]
    assert judged_with(history) == judged_with(history[::-1])


@pytest.mark.parametrize("number", [1, 2])
def test_the_quick_profile_keeps_its_minimum_effect_whatever_the_worker(number: int) -> None:
    rules = replace(QUICK, timed_limit=None)
    history = [noisy(item, 0.5, number).model_copy(update={"profile": "quick"}) for item in WALKED.decisions]
    decisions = confirm.decide(WALKED.contest, WALKED.rounds, rules, DEVICE, history)
    assert {item.min_effect for item in decisions} == {QUICK.min_effect}

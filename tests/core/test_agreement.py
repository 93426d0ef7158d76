"""Measured again: equal gains agree as often as they should, reversed ones are named, spoiled ones compare nothing."""

import math
import random

from hypothesis import given
from hypothesis import strategies as st

from fib_core.decision.agreement import again, shares, spoiled
from fib_core.decision.stats import hodges_lehmann, standard_error
from schemas.remeasurement import KeyAgain

DIGEST = "sha256:" + "0" * 64


def published(ratio: float = 1.2, error: float = 0.01) -> KeyAgain:
    return KeyAgain(
        definition="gemm", definition_digest=DIGEST, key="M=8", solution="fast", solution_digest=DIGEST,
        decision_digest=DIGEST, published_ratio=ratio, published_error=error, rounds=0,
    )  # fmt: skip


def rounds(rng: random.Random, gain: float, count: int = 20, sd: float = 0.02) -> list[float]:
    return [math.log(gain) + rng.gauss(0, sd) for _ in range(count)]


def test_two_campaigns_of_the_same_gain_agree_in_about_95_of_100() -> None:
    rng, agreed, trials = random.Random(1), 0, 400
    for _ in range(trials):
        first = rounds(rng, 1.2)
        promise = published(math.exp(hodges_lehmann(first)), standard_error(first))
        agreed += bool(again(promise, rounds(rng, 1.2), ()).agrees)
    assert 0.91 < agreed / trials < 0.985


def test_a_published_winner_that_was_luck_does_not_agree() -> None:
    key = again(published(1.2, 0.005), rounds(random.Random(2), 1.0), ())
    assert key.agrees is False
    assert not key.reverses, "no gain is no loss"


def test_a_winner_that_makes_calls_slower_reverses() -> None:
    key = again(published(1.05, 0.5), rounds(random.Random(3), 0.9), ())
    assert key.reverses
    assert key.agrees, "an error that large agrees with anything; the reversal is told all the same"
    assert shares([key])["holds"] is False


@given(st.floats(0.5, 2.0), st.floats(0.0, 0.1), st.integers(0, 1000))
def test_the_difference_is_bounded_by_both_errors(ratio: float, error: float, seed: int) -> None:
    key = again(published(ratio, error), rounds(random.Random(seed), 1.1), ())
    assert key.standard_error is not None
    assert key.difference is not None
    assert key.allowed == 1.959964 * math.hypot(error, key.standard_error)
    assert key.agrees == (key.difference <= key.allowed)


def test_what_the_machine_spoiled_is_counted_apart_and_blames_no_entry() -> None:
    good = again(published(), rounds(random.Random(4), 1.2), ())
    lost = again(published(), [0.1], ())
    bad = spoiled(published(), ["drift: made up"])
    counts = shares([good, lost, bad])
    assert (counts["promoted"], counts["compared"], counts["not_compared"]) == (3, 1, 2)
    assert counts["agreeing"] + counts["disagreeing"] == counts["compared"]
    assert lost.causes == ("1 complete rounds",)
    assert counts["holds"] is True


def test_nothing_compared_is_no_agreement() -> None:
    assert shares([])["holds"] is None
    assert shares([spoiled(published(), ["x"])])["agreement"] is None


def test_one_in_ten_may_differ_and_two_in_ten_may_not() -> None:
    right = again(published(), rounds(random.Random(5), 1.2), ())
    wrong = again(published(1.5, 0.001), rounds(random.Random(6), 1.2), ())
    assert shares([right] * 9 + [wrong])["holds"] is True
    assert shares([right] * 8 + [wrong] * 2)["holds"] is False

"""What no decision may depend on, and what no candidate may gain from: properties over made-up contests."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fib_core import confirm
from fib_core.decision.contest import Contest
from schemas.decision import Decision
from schemas.evaluation import Evaluation
from tests.core.road import round_request, walk
from tests.core.world import DEVICE, QUICK, World, gemm, solution

DEFINITION = gemm()
RULES = replace(QUICK, timed_limit=4, drift_max=1.0)
"""Without the machine's gates: reordered rounds are another history of the machine, the same of the candidates."""

CONTEST = walk(
    World({"old": 1.0, "a": 0.8, "b": 0.85}, noise=0.0), [solution(name, DEFINITION) for name in ("a", "b")], RULES,
    rounds=0,
).contest  # fmt: skip
worlds = st.builds(
    lambda a, b, noise, seed: World({"old": 1.0, "a": a, "b": b}, noise=noise, seed=seed),
    st.sampled_from([0.7, 0.85, 0.9, 0.95, 1.0, 1.1]), st.sampled_from([0.8, 0.88, 0.92, 1.0]),
    st.sampled_from([0.005, 0.02, 0.05]), st.integers(0, 10**6),
)  # fmt: skip


def rounds_of(world: World, contest: Contest = CONTEST, rounds: int = 8) -> dict[str, Evaluation]:
    numbers = range(1, rounds + 1)
    found = [item for number in numbers for item in world.visit(round_request(contest, number, f"s{number}"))]
    # Made-up names: hashing thousands of records is not what is tried here.
    return {f"sha256:{place:064x}": item for place, item in enumerate(found)}


def decide(evaluations: dict[str, Evaluation], contest: Contest = CONTEST) -> list[Decision]:
    return confirm.decide(contest, evaluations, RULES, DEVICE)


def outcome(decisions: list[Decision]) -> list[tuple[object, ...]]:
    """All that is published, but for the order of rounds and finalists and the names of evaluations."""
    return [
        (
            item.key, item.verdict, item.solution_digest, set(item.failed), item.min_effect,
            sorted((one.solution_digest, one.ratio, one.interval, one.p_value, one.p_holm) for one in item.estimates),
        )
        for item in decisions
    ]  # fmt: skip


def changed(evaluations: dict[str, Evaluation], **factors: float) -> dict[str, Evaluation]:
    """Times of the named solutions multiplied."""
    names = {item.solution_digest: item.solution.name for item in CONTEST.finalists}
    factor = {digest: factors.get(name, 1.0) for digest, name in names.items()}
    return {
        digest: item.model_copy(
            update={"samples_us": tuple(time * factor.get(item.job.solution_digest, 1.0) for time in item.samples_us)}
        )
        for digest, item in evaluations.items()
    }


@settings(max_examples=20)
@given(worlds, st.randoms(use_true_random=False))
def test_reordered_rounds_are_the_same_evidence(world: World, rng: random.Random) -> None:
    evaluations = rounds_of(world)
    order = list(range(1, 9))
    rng.shuffle(order)
    moved = {
        digest: item.model_copy(update={"job": item.job.model_copy(update={"round": order[item.job.round - 1]})})
        for digest, item in evaluations.items()
    }
    assert outcome(decide(moved)) == outcome(decide(evaluations))


@settings(max_examples=20)
@given(worlds)
def test_the_order_of_contestants_and_of_evaluations_decides_nothing(world: World) -> None:
    evaluations = rounds_of(world)
    turned = replace(CONTEST, finalists=CONTEST.finalists[::-1])
    backwards = dict(reversed(evaluations.items()))
    assert outcome(decide(backwards, turned)) == outcome(decide(evaluations))


@settings(max_examples=20)
@given(worlds, st.integers(-8, 8))
def test_a_faster_clock_for_everybody_decides_nothing(world: World, power: int) -> None:
    evaluations = rounds_of(world)
    scaled = {
        digest: item.model_copy(update={"samples_us": tuple(time * 2.0**power for time in item.samples_us)})
        for digest, item in evaluations.items()
    }
    assert outcome(decide(scaled)) == outcome(decide(evaluations))


@settings(max_examples=30)
@given(worlds, st.floats(1.0, 1.5))
def test_a_slower_candidate_is_never_promoted_where_the_faster_was_not(world: World, factor: float) -> None:
    evaluations = rounds_of(world)
    name = {item.solution.name: item.solution_digest for item in CONTEST.finalists}["a"]
    before = {item.key for item in decide(evaluations) if item.solution_digest == name}
    after = {item.key for item in decide(changed(evaluations, a=factor)) if item.solution_digest == name}
    assert after <= before


def test_identical_times_prove_nothing() -> None:
    decisions = [item for item in decide(rounds_of(World({"old": 1.0, "a": 1.0, "b": 1.0}, noise=0.0))) if item.control]
    assert decisions
    for decision in decisions:
        assert decision.verdict == "kept_incumbent"
        assert decision.control is not None
        assert {(one.p_value, one.ratio) for one in (*decision.estimates, decision.control)} == {(1.0, 1.0)}


def test_every_key_has_one_verdict_and_they_add_up() -> None:
    decisions = decide(rounds_of(World({"old": 1.0, "a": 0.8, "b": 0.85})))
    assert sorted(item.key for item in decisions) == sorted(CONTEST.keys)


@settings(max_examples=10)
@given(worlds)
def test_rounds_of_another_campaign_are_no_evidence(world: World) -> None:
    evaluations = rounds_of(world)
    other = replace(CONTEST, campaign=1)
    assert {item.verdict for item in decide(evaluations, other)} <= {"not_enough_rounds", "kept_incumbent"}
    assert all(item.rounds == 0 for item in decide(evaluations, other))


def test_two_campaigns_side_by_side_are_decided_each_by_its_own() -> None:
    second = replace(CONTEST, campaign=2)
    fast, slow = World({"old": 1.0, "a": 0.6, "b": 1.0}), World({"old": 1.0, "a": 1.6, "b": 1.0}, seed=5)
    mine = rounds_of(fast)
    theirs = {
        digest.replace("sha256:0", "sha256:f"): one.model_copy(
            update={"job": one.job.model_copy(update={"campaign": 2})}
        )
        for digest, one in rounds_of(slow, second).items()
    }
    both = mine | theirs
    assert decide(both) == decide(mine)
    assert decide(both, second) == decide(theirs, second)
    assert "promoted" in {item.verdict for item in decide(both)}
    assert "promoted" not in {item.verdict for item in decide(both, second)}
    assert {item.campaign for item in decide(both, second)} == {2}


@pytest.mark.parametrize("campaign", [0, 3])
def test_a_round_is_asked_for_under_the_campaign_of_its_contest(campaign: int) -> None:
    request = round_request(replace(CONTEST, campaign=campaign), 1, "s")
    assert request.campaign == campaign
    assert ("campaign" in request.model_dump()) == (campaign > 0)

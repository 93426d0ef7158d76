"""Confirm: nothing weaker than the rule gets in, and every key says why it has what it has."""

from dataclasses import replace
from itertools import pairwise

import pytest

from fib_core import confirm
from fib_core.decision.profiles import FULL, Look, Rules
from schemas.evaluation import Status
from schemas.workload import Workload
from tests.core.road import Walked, frozen, round_request, walk
from tests.core.world import DEVICE, QUICK, SETTINGS, World, gemm, solution

DEFINITION = gemm()
TIMED = "not timed in the profile quick"


def named(*names: str, **more):
    return [solution(name, DEFINITION, **more) for name in names]


def timed(walked: Walked):
    return [item for item in walked.decisions if TIMED not in item.reason]


def promoted(walked: Walked) -> list[str]:
    return [walked.solutions[item.solution_digest].name for item in walked.decisions if item.solution_digest]


def test_a_faster_kernel_is_promoted_at_its_true_ratio_with_its_evidence() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.8}), named("fast"))
    assert {item.verdict for item in timed(walked)} == {"promoted"}
    for decision in timed(walked):
        (estimate,) = decision.estimates
        assert estimate.ratio == pytest.approx(1.25, rel=0.04)
        assert estimate.interval[0] <= estimate.ratio <= estimate.interval[1]
        assert estimate.p_holm < decision.alpha
        assert len(estimate.log_ratios) == decision.rounds == 8
        assert decision.control is not None
        assert set(decision.evaluations) <= set(walked.rounds)
        assert decision.evaluations


def test_an_injected_slow_down_of_fifteen_percent_is_never_promoted() -> None:
    for seed in range(5):
        world = World({"old": 1.0, "slow": 1.15}, seed=seed)
        screened = World({"old": 1.0, "slow": 0.5})
        walked = walk(screened, named("slow"), rounds=0)
        rounds = {}
        for number in range(1, 9):
            request = round_request(walked.contest, number, f"s{number}")
            rounds |= {item.digest: item for item in world.visit(request)}
        decisions = confirm.decide(walked.contest, rounds, QUICK, DEVICE)
        assert {item.verdict for item in decisions} == {"kept_incumbent"}
        judged = [item for item in decisions if item.estimates]
        assert all({"significance", "min_effect", "gates_speed"} == set(item.failed) for item in judged)


def test_a_gain_below_the_minimum_effect_keeps_the_incumbent_and_says_so() -> None:
    walked = walk(World({"old": 1.0, "bit": 0.94}, noise=0.005), named("bit"))
    for decision in timed(walked):
        assert decision.verdict == "kept_incumbent"
        assert decision.failed == ("min_effect",)
        assert decision.reason.startswith("kept incumbent: best candidate bit at 1.0")
        assert "is below the minimum effect 1.10x" in decision.reason


@pytest.mark.parametrize("side", ["holdout", "stress"])
def test_a_loss_on_holdout_or_stress_stops_a_promotion(side: str) -> None:
    world = World({"old": 1.0, "fast": 0.6})
    snapshot, _ = frozen(DEFINITION)
    for item in snapshot.workloads:
        if item.split == side:
            world.per_workload["fast", item.workload.digest] = 1.2
    walked = walk(world, named("fast"))
    assert promoted(walked) == []
    assert {item.failed for item in timed(walked)} == {("gates_speed",)}
    assert all(f"gate ({side} M=" in item.reason for item in timed(walked))


def test_one_wrong_answer_in_one_round_bars_the_candidate_from_every_key() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.5, "fine": 0.6}), named("fast", "fine"))
    fast = next(digest for digest, item in walked.solutions.items() if item.name == "fast")
    victim = next(d for d, item in walked.rounds.items() if item.job.solution_digest == fast)
    broken = walked.rounds[victim].model_copy(update={"status": Status.INCORRECT_NUMERICAL, "samples_us": ()})
    decisions = confirm.decide(walked.contest, walked.rounds | {victim: broken}, QUICK, DEVICE)
    chosen = {walked.solutions[item.solution_digest].name for item in decisions if item.solution_digest}
    assert promoted(walked)[0] == "fast"
    assert chosen == {"fine"}


def test_the_machines_fault_costs_a_round_and_nobodys_reputation() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.5}), named("fast"))
    spoiled = {
        digest: item.model_copy(update={"status": Status.INVALID, "samples_us": ()}) if item.job.round == 3 else item
        for digest, item in walked.rounds.items()
    }
    decisions = confirm.decide(walked.contest, spoiled, QUICK, DEVICE)
    assert {item.verdict for item in decisions if TIMED not in item.reason} == {"not_enough_rounds"}
    assert confirm.needs_more_rounds(decisions)
    request = round_request(walked.contest, 9, "s9")
    more = {item.digest: item for item in World({"old": 1.0, "fast": 0.5}).visit(request)}
    assert {item.verdict for item in confirm.decide(walked.contest, spoiled | more, QUICK, DEVICE)} >= {"promoted"}


def test_too_few_rounds_are_a_verdict_of_their_own() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.5}), named("fast"), rounds=7)
    assert {item.verdict for item in timed(walked)} == {"not_enough_rounds"}
    assert all(item.reason == "not enough rounds: 7 complete of 8 planned" for item in timed(walked))


def test_a_promoted_control_makes_the_whole_definition_invalid() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.5}, control_gain=1.3), named("fast"))
    assert promoted(walked) == []
    assert {item.verdict for item in timed(walked)} == {"invalid"}
    assert all("control" in item.reason for item in timed(walked))


def test_few_families_promote_nothing_for_want_of_a_holdout() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.5}), named("fast"), sizes=(1, 2, 4))
    assert promoted(walked) == []
    assert all(item.reason.startswith("no holdout") for item in walked.decisions)
    assert walked.rounds == {}


def test_every_key_has_exactly_one_decision_and_boxes_never_overlap() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.5}), named("fast"))
    keys = [item.key for item in walked.decisions]
    assert sorted(keys) == sorted(walked.contest.keys)
    intervals = sorted(item.box.axes["M"] for item in walked.decisions)
    assert all(low[1] < high[0] for low, high in pairwise(intervals))


def test_a_box_is_the_hull_of_the_train_points_of_its_key() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.5}), named("fast"))
    for decision in walked.decisions:
        points = [item.workload.axes["M"] for item in walked.contest.keys[decision.key]]
        assert decision.box.axes["M"] == (min(points), max(points))


def test_a_candidate_is_no_finalist_of_a_key_that_it_does_not_fully_support() -> None:
    walked = walk(World({"old": 1.0, "big": 0.5}), named("big", supports=("M >= 9",)))
    for decision in walked.decisions:
        small = decision.box.axes["M"][0] < 9
        assert (decision.verdict == "promoted") <= (not small)
        assert bool(decision.finalists) != small
    assert promoted(walked)


def test_nobody_is_run_outside_its_support_and_incumbent_and_control_are_everywhere() -> None:
    candidates = [*named("big", supports=("M >= 9",)), *named("all")]
    walked = walk(World({"old": 1.0, "big": 0.5, "all": 0.6}), candidates, rounds=0)
    requests = confirm.round_requests(walked.contest, 1, SETTINGS, "s")
    seen = [(item.axes["M"], entrant) for each in requests for item in each.workloads for entrant in each.contestants]
    assert {size for size, one in seen if one.solution.name == "big"} == {
        item.workload.axes["M"] for item in walked.contest.timed if item.workload.axes["M"] >= 9
    }
    for role in ("incumbent", "control"):
        assert len([size for size, one in seen if one.role == role]) == len(walked.contest.timed)


def test_a_crash_outside_the_declared_support_is_held_against_nobody() -> None:
    def verdict(name: str, workload: Workload) -> Status:
        return Status.RUNTIME_ERROR if name == "big" and workload.axes["M"] < 9 else Status.PASSED

    walked = walk(World({"old": 1.0, "big": 0.5}, verdict=verdict), named("big", supports=("M >= 9",)))
    assert promoted(walked)


def test_of_two_indistinguishable_winners_the_one_that_wins_most_keys_is_shipped() -> None:
    world = World({"old": 1.0, "a": 0.50, "b": 0.501}, noise=0.03)
    assert len(set(promoted(walk(world, named("a", "b"))))) == 1


def test_a_round_brings_everybody_once_with_a_control_in_an_order_of_its_own() -> None:
    walked = walk(World({"old": 1.0, "a": 0.5, "b": 0.6}), named("a", "b"), rounds=0)
    requests = [round_request(walked.contest, number, f"s{number}") for number in range(12)]
    for request in requests:
        assert sorted(item.role for item in request.contestants) == ["candidate", "candidate", "control", "incumbent"]
        assert {item.digest for item in request.workloads} == {item.workload.digest for item in walked.contest.timed}
    assert len({tuple(item.solution.name + item.role for item in request.contestants) for request in requests}) > 5
    assert len({tuple(item.digest for item in request.workloads) for request in requests}) > 5
    assert requests[3] == round_request(walked.contest, 3, "s3")


def test_the_full_profile_stops_at_the_first_look_that_decides_and_goes_on_otherwise() -> None:
    clear = walk(World({"old": 1.0, "fast": 0.5}), named("fast"), rules=FULL, rounds=10)
    assert {item.verdict for item in clear.decisions} == {"promoted"}
    assert {item.alpha for item in clear.decisions} == {0.02}
    lenient = replace(FULL, screen_ratio_min=0.0)
    same = walk(World({"old": 1.0, "same": 1.0}), named("same"), rules=lenient, rounds=10)
    assert {item.reason for item in same.decisions} == {"not enough rounds: undecided after 10 of 20"}
    done = walk(World({"old": 1.0, "same": 1.0}), named("same"), rules=lenient)
    assert {(item.verdict, item.rounds, item.alpha) for item in done.decisions} == {("kept_incumbent", 20, 0.03)}


def test_decisions_depend_on_samples_alone() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.5}), named("fast"))
    backwards = dict(reversed(walked.rounds.items()))
    assert confirm.decide(walked.contest, backwards, QUICK, DEVICE) == walked.decisions


@pytest.mark.slow
def test_identical_kernels_are_promoted_no_more_often_than_alpha() -> None:
    rules = Rules(
        profile="quick", looks=(Look(8, 0.05),), min_effect=0.0, noise_factor=0.0, finalist_limit=2, timed_limit=6,
        screen_ratio_min=0.0, margin=1.0,
    )  # fmt: skip
    keys, wrong = 0, 0
    for seed in range(40):
        walked = walk(World({"old": 1.0, "a": 1.0, "b": 1.0}, noise=0.04, seed=seed), named("a", "b"), rules=rules)
        # One key per campaign: the keys of a World share their noise. Spoiled campaigns count as wrong, too.
        keys += 1
        wrong += timed(walked)[0].verdict == "promoted" or timed(walked)[0].verdict == "invalid"
    # Two finalists by Holm, and the control beside them: at most alpha each.
    assert wrong / keys <= 2 * 0.05 + 3 * (0.1 * 0.9 / keys) ** 0.5

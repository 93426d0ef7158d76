"""Looks and gates of the profile full: an early stop is clear, a control that wins spoils, no gate goes untried."""

from dataclasses import replace

import pytest

from fib_core import confirm
from fib_core.decision.profiles import FULL
from tests.core.road import SIZES, Walked, round_request, walk
from tests.core.world import DEVICE, World, gemm, solution

DEFINITION = gemm()


def named(name: str, supports: tuple[str, ...] = ()):
    return [solution(name, DEFINITION, supports=supports)]


def promoted(walked: Walked) -> list[str]:
    return [walked.solutions[item.solution_digest].name for item in walked.decisions if item.solution_digest]


def test_the_full_profile_asks_for_three_times_the_noise_that_the_control_shows_at_either_look() -> None:
    walked = walk(World({"old": 1.0, "fast": 0.5}, noise=0.05), named("fast"), rules=FULL)
    for decision in walked.decisions:
        assert decision.control is not None
        assert decision.rounds == 10
        assert decision.min_effect == pytest.approx(max(0.01, 3 * decision.control.standard_error))
    walked = walk(World({"old": 1.0, "bit": 0.97}, noise=0.05), named("bit"), rules=FULL)
    assert {item.rounds for item in walked.decisions} == {20}
    for decision in walked.decisions:
        assert decision.control is not None
        assert decision.min_effect == pytest.approx(max(0.01, 3 * decision.control.standard_error))


def test_a_control_that_wins_at_the_first_look_spoils_like_a_finalist_that_wins_there() -> None:
    world = World({"old": 1.0, "same": 1.0}, noise=0.004, control_gain=1.05)
    walked = walk(world, named("same"), rules=replace(FULL, screen_ratio_min=0.0), rounds=10)
    assert {(item.verdict, item.rounds) for item in walked.decisions} == {("invalid", 10)}
    assert {item.causes for item in walked.decisions} == {()}, "it is the rule that failed, not the machine"
    assert not confirm.needs_more_rounds(walked.decisions)
    honest = walk(replace(world, control_gain=1.0), named("same"), rules=replace(FULL, screen_ratio_min=0.0), rounds=10)
    assert {item.verdict for item in honest.decisions} == {"not_enough_rounds"}


def test_no_holdout_inside_its_support_means_no_promotion() -> None:
    narrow = named("narrow", supports=("M > 1", "M < 12"))
    walked = walk(World({"old": 1.0, "narrow": 0.5}), narrow, rules=FULL)
    assert {item.workload.axes["M"] for item in walked.contest.placed if item.split == "holdout"} == {1, 12, 16}
    entered = [item for item in walked.decisions if item.finalists]
    assert {item.key for item in entered} == {"M=2", "M=4", "M=8"}
    assert {item.failed for item in entered} == {("gates_passed",)}
    assert all("no holdout workload inside its support" in item.reason for item in entered)
    wider = walk(World({"old": 1.0, "wide": 0.5}), named("wide", supports=("M < 12",)), rules=FULL)
    assert promoted(wider)


def test_a_promotion_names_only_the_gates_that_its_winner_took() -> None:
    walked = walk(World({"old": 1.0, "wide": 0.5}), named("wide", supports=("M < 12",)), rules=FULL)
    outside = {item.workload.digest for item in walked.contest.timed if item.workload.axes["M"] >= 12}
    won = [item for item in walked.decisions if item.verdict == "promoted"]
    assert won
    assert {item.split for item in walked.contest.timed if item.workload.digest in outside} & {"holdout", "stress"}
    assert not any(outside & set(item.workloads) for item in won)


def test_a_holdout_of_the_box_outside_its_support_is_never_a_pass() -> None:
    def verdict(*supports: str) -> tuple[str, str]:
        world, sizes = World({"old": 1.0, "fast": 0.5}), (*SIZES, 56)
        contest = walk(world, named("fast", supports=supports), rules=FULL, sizes=sizes, rounds=0).contest
        hole = [item for item in contest.placed if item.workload.axes["M"] == 56]
        rest = tuple(item for item in contest.placed if item not in hole)
        placed = (*rest, *(item.model_copy(update={"split": "holdout"}) for item in hole))
        contest = replace(contest, placed=placed, timed=placed)
        requests = [round_request(contest, number, f"s{number}") for number in range(1, 21)]
        rounds = {item.digest: item for item in world.visits(requests)}
        (decision,) = [item for item in confirm.decide(contest, rounds, FULL, DEVICE) if item.key == "M=64"]
        assert decision.box.covers({"M": 56})
        return decision.verdict, decision.reason

    assert verdict()[0] == "promoted"
    kept, reason = verdict("M != 56")
    assert kept == "kept_incumbent"
    assert "a holdout workload of the key's box is outside its support" in reason

"""Campaigns accumulate: cut anywhere they decide the same, finished they cost nothing, spoiled they are repeated."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from prefect.logging import disable_run_logger

from fib_core.workloads.axisclass import class_key
from schemas.decision import Decision
from tasks import confirm as confirm_task
from tasks import rounds
from tasks.budget import Budget, OutOfTime
from tasks.confirm import _settled
from tasks.repeat import _campaign, repeat
from tasks.rounds import earlier, planned, play
from tasks.wiring import House
from tests.core.world import ENVIRONMENT, World
from tests.fakes.memory_store import MemoryStore
from tests.tasks.world_house import house_of, screened_of, visits_of

SPEED = {"old": 1.0, "fast": 0.5, "twin": 1.0}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No run to log to; and rounds whose order is the same in every run, so that runs can be compared."""
    monkeypatch.setattr(rounds.secrets, "token_hex", lambda size: "ab" * size)
    with disable_run_logger():
        yield


def decide(house: House, world: World) -> dict[str, Decision]:
    return _settled(house, screened_of(world, house), None)


def names_of(decisions: dict[str, Decision]) -> list[str]:
    return [item.digest for item in decisions.values()]


def jobs_of(store: MemoryStore) -> int:
    return sum(key.startswith("evaluations/by-job/") for key in store.objects)


def bodies_of(store: MemoryStore) -> int:
    return sum(key.startswith("evaluations/") for key in store.objects) - jobs_of(store)


@effort(max_examples=8, deadline=None)
@given(grants=st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_a_run_cut_in_slices_decides_what_one_whole_run_decides_and_measures_nothing_twice(
    grants: list[int],
) -> None:
    _cut(grants, "quick")


def test_a_full_run_cut_in_slices_decides_what_one_whole_run_decides() -> None:
    _cut([7, 1, 6], "full")


def _cut(grants: list[int], profile: str) -> None:
    world, sliced, whole = World(SPEED), MemoryStore(), MemoryStore()
    decided = None
    for granted in [*grants, 10**9]:
        house = house_of(world, sliced, granted, profile=profile)
        try:
            decided = decide(house, world)
        except OutOfTime:
            assert len(visits_of(house)) == granted
    once = house_of(world, whole, profile=profile)
    assert decided is not None
    assert names_of(decided) == names_of(decide(once, world))
    assert any(item.verdict == "promoted" for item in decided.values())
    assert jobs_of(sliced) == bodies_of(sliced) == jobs_of(whole)


def test_a_stopped_campaign_is_not_finished_and_decides_nothing() -> None:
    world, store = World(SPEED), MemoryStore()
    with pytest.raises(OutOfTime, match="round 4 of 8 of gemm_n8_k4, campaign 0"):
        decide(house_of(world, store, 3), world)
    assert not [key for key in store.objects if key.startswith(("campaigns/", "decisions/"))]


def test_a_finished_campaign_is_found_whole_and_another_number_is_measured_afresh() -> None:
    world, store = World(SPEED), MemoryStore()
    first = decide(house_of(world, store), world)
    again = house_of(world, store)
    assert names_of(decide(again, world)) == names_of(first)
    assert visits_of(again) == []
    other = house_of(world, store, campaign=1)
    fresh = decide(other, world)
    assert {item.campaign for item in visits_of(other)} == {1}
    assert {item.campaign for item in fresh.values()} == {1}
    assert jobs_of(store) == bodies_of(store) == 2 * len(visits_of(other)) * len(set(_pairs(other)))


def test_a_later_way_of_taking_times_is_measured_afresh_and_not_answered_by_rounds_of_the_earlier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, store = World(SPEED), MemoryStore()
    first = house_of(world, store)
    decide(first, world)
    for place in ("fib_core.jobs.POLICY_VERSION", "tasks.campaigns.POLICY_VERSION"):
        monkeypatch.setattr(place, 99)
    again = house_of(world, store)
    decide(again, world)
    assert len(visits_of(again)) == len(visits_of(first)) > 0
    third = house_of(world, store)
    decide(third, world)
    assert visits_of(third) == [], "and is found under its own number from then on"


@pytest.mark.parametrize(("now", "afresh"), [("580.65.06", True), ("570.211.01", False)])
def test_another_major_of_the_driver_is_measured_afresh_and_a_minor_one_is_not(
    monkeypatch: pytest.MonkeyPatch, now: str, afresh: bool
) -> None:
    """Else what a driver made stale would be confirmed again by the very rounds that went stale."""
    world, store = World(SPEED), MemoryStore()

    def on(driver: str) -> House:
        environment = ENVIRONMENT.model_copy(update={"driver": driver})
        monkeypatch.setattr("tests.tasks.world_house.ENVIRONMENT", environment)
        house = house_of(world, store)
        decide(house, world)
        return house

    before = on("570.86.10")
    assert len(visits_of(on(now))) == (len(visits_of(before)) if afresh else 0)


def _pairs(house: House) -> list[tuple[str, str, str]]:
    return [
        (entrant.role, entrant.solution_digest, workload.digest)
        for request in visits_of(house)
        for entrant in request.contestants
        for workload in request.workloads
    ]


def test_a_campaign_that_the_control_spoiled_is_repeated_under_the_next_number_by_the_next_run() -> None:
    store, spoiled, sound = MemoryStore(), World(SPEED, control_gain=2.0), World(SPEED)
    first = decide(house_of(spoiled, store), spoiled)
    assert any(item.verdict == "invalid" for item in first.values())
    second = house_of(sound, store)
    mended = decide(second, sound)
    assert {request.campaign for request in visits_of(second)} == {1}
    assert all(item.verdict != "invalid" for item in mended.values())
    assert {item.campaign for item in mended.values() if item.rounds} == {1}
    third = house_of(sound, store)
    assert names_of(decide(third, sound)) == names_of(mended)
    assert visits_of(third) == [], "and then it stands"


def test_a_machine_that_stays_bad_is_met_afresh_each_time_instead_of_its_own_spoiled_rounds() -> None:
    store, spoiled = MemoryStore(), World(SPEED, control_gain=2.0)
    seen = []
    for _ in range(3):
        house = house_of(spoiled, store)
        decide(house, spoiled)
        seen.append({request.campaign for request in visits_of(house)})
    assert seen == [{0}, {1}, {2}]


def test_keys_with_a_standing_decision_get_no_rounds_and_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world, store = World(SPEED), MemoryStore()
    known = decide(house_of(world, store), world)
    timed = [key for key, item in known.items() if item.rounds]
    standing = {timed[0]: known[timed[0]]}
    monkeypatch.setattr(confirm_task, "standing_decisions", lambda house, contest: dict(standing))
    house = house_of(world, MemoryStore())
    mixed = decide(house, world)
    assert mixed.keys() == known.keys()
    assert mixed[timed[0]] is standing[timed[0]]
    visited = {class_key(w.axes) for r in visits_of(house) for w in r.workloads if w.digest in _train(house, world)}
    assert visited == set(timed[1:])
    assert standing[timed[0]].digest not in [key[10:-5] for key in house.store.keys("decisions/")]


def test_when_every_key_stands_nothing_is_measured_or_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(SPEED)
    known = decide(house_of(world), world)
    monkeypatch.setattr(confirm_task, "standing_decisions", lambda house, contest: dict(known))
    house = house_of(world, MemoryStore())
    assert decide(house, world) == known
    assert visits_of(house) == []
    assert list(house.store.keys("")) == []


def _train(house: House, world: World) -> set[str]:
    return {item.workload.digest for item in screened_of(world, house).contest.train}


def test_further_campaigns_cost_a_look_once_they_are_finished() -> None:
    world, store = World(SPEED), MemoryStore()
    house = house_of(world, store, campaigns=(0, 1))
    plan = planned(house, screened_of(world, house), None, 1)
    assert earlier(house, plan) is None
    decisions = play(house, plan)
    again = house_of(world, store, campaigns=(0, 1))
    counts = _campaign(again, [screened_of(world, again)], None, 1)
    assert visits_of(again) == []
    assert counts.total() == len(decisions)


def test_the_time_of_further_campaigns_is_part_of_the_runs() -> None:
    world, store = World(SPEED), MemoryStore()
    house = house_of(world, store, campaigns=(0, 1))
    house.budget.started -= 500.0
    with disable_run_logger():
        summary = repeat(house, [], None)
    assert summary["wall_s"] >= 500.0
    assert summary["campaigns"]["finished"] == [0, 1]


def test_a_blocked_contest_is_decided_without_rounds_and_has_no_campaigns() -> None:
    world, store = World(SPEED), MemoryStore()
    house = house_of(world, store, campaigns=(0, 1))
    screened = screened_of(world, house)
    blocked = replace(screened, contest=replace(screened.contest, blocked="no holdout: made up"))
    decided = _settled(house, blocked, None)
    assert {item.reason for item in decided.values()} == {"no holdout: made up"}
    assert _campaign(house, [blocked], None, 1).total() == 0
    assert visits_of(house) == []


def test_the_first_visit_is_always_granted_so_that_a_run_that_is_started_again_gets_on() -> None:
    budget = Budget(limit_s=1e-9)
    budget.take()
    with pytest.raises(OutOfTime, match="the start"):
        budget.take()


def test_without_a_budget_visits_are_never_refused() -> None:
    budget = Budget()
    for _ in range(1000):
        budget.take()
    assert budget.counts["visits"] == 1000

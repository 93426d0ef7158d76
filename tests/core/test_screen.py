"""Screen: who visits, who is the incumbent, who is worth confirming, and why everybody else is not."""

import pytest

from fib_core import screen
from fib_core.decision.profiles import FULL
from schemas.evaluation import Status
from schemas.workload import Workload
from tests.core.road import SIZES, frozen, walk
from tests.core.world import QUICK, SETTINGS, World, gemm, solution

DEFINITION = gemm()


def named(*names: str, **more):
    return [solution(name, DEFINITION, **more) for name in names]


def names_of(contest) -> list[str]:
    return [item.solution.name for item in contest.finalists]


def note(walked, name: str) -> str:
    return next(walked.contest.notes[d] for d, item in walked.solutions.items() if item.name == name)


def test_incumbents_are_planned_first_and_everybody_meets_every_workload() -> None:
    snapshot, old = frozen(DEFINITION)
    entrants = screen.contestants(DEFINITION, [*named("a", "b"), old], snapshot.incumbents)
    assert [item.role for item in entrants] == ["incumbent", "candidate", "candidate"]
    planned = screen.plan(snapshot, DEFINITION, entrants, SETTINGS, "seed")
    assert [len(request.workloads) for request in planned.requests] == [len(snapshot.workloads)] * 3
    assert all(len(request.contestants) == 1 for request in planned.requests)


def test_finished_pairs_are_not_planned_again() -> None:
    snapshot, old = frozen(DEFINITION)
    entrants = screen.contestants(DEFINITION, [old, *named("a")], snapshot.incumbents)
    done = {(entrants[0].solution_digest, item.workload.digest) for item in snapshot.workloads}
    first = snapshot.workloads[0].workload.digest
    planned = screen.plan(snapshot, DEFINITION, entrants, SETTINGS, "s", done | {(entrants[1].solution_digest, first)})
    (request,) = planned.requests
    assert request.contestants[0].solution.name == "a"
    assert first not in {item.digest for item in request.workloads}
    assert planned.finished_count == len(snapshot.workloads) + 1


def test_outside_its_declared_support_a_solution_does_not_apply_and_is_counted() -> None:
    snapshot, old = frozen(DEFINITION)
    entrants = screen.contestants(DEFINITION, [old, *named("big", supports=("M >= 16",))], snapshot.incumbents)
    planned = screen.plan(snapshot, DEFINITION, entrants, SETTINGS, "s")
    visited = {item.axes["M"] for item in planned.requests[1].workloads}
    assert min(visited) >= 16
    assert len(planned.not_applicable) + len(planned.requests[1].workloads) == len(snapshot.workloads)


def test_a_solution_that_applies_nowhere_makes_no_visit() -> None:
    snapshot, old = frozen(DEFINITION)
    nowhere = named("no", supports=("M > 10**9", "Q == 1"))
    entrants = screen.contestants(DEFINITION, [old, *nowhere], snapshot.incumbents)
    planned = screen.plan(snapshot, DEFINITION, entrants, SETTINGS, "s")
    assert len(planned.requests) == 1
    assert len(planned.not_applicable) == len(snapshot.workloads)


def test_the_fastest_become_finalists_within_the_limit_and_the_others_are_told_why() -> None:
    speeds = {"old": 1.0, "a": 0.5, "b": 0.6, "c": 0.7, "same": 0.99, "slow": 3.0}
    walked = walk(World(speeds, noise=0.0), named("a", "b", "c", "same", "slow"), rounds=0)
    assert names_of(walked.contest) == ["a", "b"]
    assert "others cover its keys better" in note(walked, "c")
    assert note(walked, "same") == "screened out: 1.01x the incumbent's speed at best"
    assert note(walked, "slow") == "screened out: 0.33x the incumbent's speed at best"
    assert note(walked, "old") == "incumbent"
    assert len(walked.contest.notes) == 6


def test_a_near_tie_with_the_incumbent_may_be_confirmed_in_full_but_not_in_quick() -> None:
    speeds = {"old": 1.0, "unlucky": 1.02, "slow": 1.05}
    full = walk(World(speeds, noise=0.0), named("unlucky", "slow"), rules=FULL, rounds=0)
    assert names_of(full.contest) == ["unlucky"]
    assert note(full, "unlucky") == "finalist: 0.98x at best in the screen"
    assert note(full, "slow") == "screened out: 0.95x the incumbent's speed at best"
    quick = walk(World(speeds, noise=0.0), named("unlucky", "slow"), rounds=0)
    assert names_of(quick.contest) == []


def test_near_ties_take_only_places_that_the_best_leave_free() -> None:
    speeds = {"old": 1.0, "a": 0.9, "b": 0.91, "c": 0.92, "tie": 1.01}
    walked = walk(World(speeds, noise=0.0), named("tie", "c", "b", "a"), rules=FULL, rounds=0)
    assert names_of(walked.contest) == ["a", "b", "c"]
    some = walk(World(speeds, noise=0.0), named("tie", "a"), rules=FULL, rounds=0)
    assert names_of(some.contest) == ["a", "tie"]


def test_a_specialist_for_some_keys_goes_before_a_second_best_everywhere() -> None:
    world = World({"old": 1.0, "a": 0.5, "b": 0.52, "small": 1.0}, noise=0.0)
    snapshot, _ = frozen(DEFINITION)
    timed = {item.workload.digest for item in screen.timed_workloads(snapshot, DEFINITION, QUICK)}
    for item in snapshot.workloads:
        if item.workload.digest in timed and item.workload.axes["M"] <= 4:
            world.per_workload["small", item.workload.digest] = 0.1
    assert names_of(walk(world, named("a", "b", "small"), rounds=0).contest) == ["a", "small"]


@pytest.mark.parametrize("status", [Status.INCORRECT_NUMERICAL, Status.RUNTIME_ERROR, Status.INVALID, Status.TIMEOUT])
def test_one_failure_on_any_side_keeps_a_candidate_out(status: Status) -> None:
    snapshot, _ = frozen(DEFINITION)
    for side in ("train", "holdout", "stress"):
        victim = next(item.workload.digest for item in snapshot.workloads if item.split == side)

        def verdict(name: str, workload: Workload, victim: str = victim) -> Status:
            return status if name == "fast" and workload.digest == victim else Status.PASSED

        walked = walk(World({"old": 1.0, "fast": 0.1}, verdict=verdict), named("fast"), rounds=0)
        assert names_of(walked.contest) == []
        assert note(walked, "fast").startswith(f"{status.value} on a {side} workload")


def test_cheating_once_is_what_is_remembered_among_many_failures() -> None:
    def verdict(name: str, workload: Workload) -> Status:
        if name == "old":
            return Status.PASSED
        return Status.CHEATED if workload.axes["M"] == 8 else Status.RUNTIME_ERROR

    walked = walk(World({"old": 1.0, "fast": 0.1}, verdict=verdict), named("fast"), rounds=0)
    assert note(walked, "fast").startswith("CHEATED on a")


def test_an_unevaluated_workload_is_not_a_pass() -> None:
    snapshot, old = frozen(DEFINITION)
    entrants = screen.contestants(DEFINITION, [old, *named("fast")], snapshot.incumbents)
    requests = screen.plan(snapshot, DEFINITION, entrants, SETTINGS, "s").requests
    seen = World({"old": 1.0, "fast": 0.1}).visits(requests)[:-1]
    contest = screen.finalists(snapshot, DEFINITION, entrants, seen, QUICK)
    assert contest.finalists == ()
    assert any("not evaluated" in text for text in contest.notes.values())


def test_the_fastest_declared_incumbent_is_the_incumbent_and_a_slower_form_stands_aside() -> None:
    snapshot, old = frozen(DEFINITION)
    other = solution("older", DEFINITION, author="baseline")
    digests = tuple(item.digest_for(DEFINITION.digest) for item in (other, old))
    snapshot = snapshot.model_copy(update={"incumbents": {DEFINITION.digest: digests}})
    entrants = screen.contestants(DEFINITION, [old, other], snapshot.incumbents)
    requests = screen.plan(snapshot, DEFINITION, entrants, SETTINGS, "s").requests
    world = World({"old": 1.0, "older": 1.2}, noise=0.0)
    contest = screen.finalists(snapshot, DEFINITION, entrants, world.visits(requests), QUICK)
    assert contest.incumbent is not None
    assert contest.incumbent.solution.name == "old"
    assert contest.notes[digests[0]] == "declared incumbent, slower overall"
    assert contest.forms == ()


def test_without_a_usable_incumbent_everybody_is_ranked_and_nobody_goes_on() -> None:
    world = World(
        {"old": 1.0, "fast": 0.1}, verdict=lambda name, _: Status.TIMEOUT if name == "old" else Status.PASSED
    )
    walked = walk(world, named("fast"))
    assert walked.contest.blocked is not None
    assert "old: TIMEOUT" in walked.contest.blocked
    assert {item.verdict for item in walked.decisions} == {"kept_incumbent"}
    assert {item.incumbent_digest for item in walked.decisions} == {None}


def test_a_quick_run_times_few_workloads_with_both_gates_and_the_heaviest_keys() -> None:
    snapshot, _ = frozen(DEFINITION, SIZES)
    timed = screen.timed_workloads(snapshot, DEFINITION, QUICK)
    assert len(timed) == 6
    assert {item.split for item in timed} == {"train", "holdout", "stress"}
    train = [item for item in timed if item.split == "train"]
    assert len({item.family for item in train}) == len(train)
    assert screen.timed_workloads(snapshot, DEFINITION, FULL) == snapshot.workloads


def test_errors_of_the_incumbent_are_known_per_workload_and_output() -> None:
    snapshot, old = frozen(DEFINITION)
    entrants = screen.contestants(DEFINITION, [old], snapshot.incumbents)
    seen = World({"old": 1.0}).visits(screen.plan(snapshot, DEFINITION, entrants, SETTINGS, "s").requests)
    figures = {"C": {"max_abs": 0.25, "max_rel": None}}
    seen = [type(item).model_validate(item.model_dump() | {"errors": figures}) for item in seen]
    errors = screen.incumbent_errors(seen, entrants[0].solution_digest)
    assert set(errors) == {item.workload.digest for item in snapshot.workloads}
    assert set(map(str, errors.values())) == {"{'C': 0.25}"}

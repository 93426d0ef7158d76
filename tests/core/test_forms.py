"""A promotion must beat the fastest declared form at its own key, not only the form that is fastest overall."""

from fib_core import confirm, screen
from schemas.decision import Decision
from tests.core.road import SIZES, frozen
from tests.core.world import DEVICE, QUICK, SETTINGS, World, gemm, solution

LARGE = 17


def _decisions(candidate_speed: float, form_speed_at_large: float) -> dict[str, Decision]:
    """``old`` is the incumbent overall; ``branchy`` is slow on small sizes and fast on large ones."""
    definition = gemm()
    snapshot, old = frozen(definition, SIZES)
    branchy = solution("branchy", definition, author="baseline")
    new = solution("new", definition)
    declared = tuple(item.digest_for(definition.digest) for item in (old, branchy))
    snapshot = snapshot.model_copy(update={"incumbents": {definition.digest: declared}})
    at_large = {
        ("branchy", item.workload.digest): form_speed_at_large
        for item in snapshot.workloads
        if item.workload.axes["M"] >= LARGE
    }
    world = World({"old": 1.0, "branchy": 8.0, "new": candidate_speed}, noise=0.01, per_workload=at_large)
    entrants = screen.contestants(definition, [old, branchy, new], snapshot.incumbents)
    seen = world.visits(screen.plan(snapshot, definition, entrants, SETTINGS, "s").requests)
    contest = screen.finalists(snapshot, definition, entrants, seen, QUICK)
    assert contest.incumbent is not None
    assert contest.incumbent.solution.name == "old"
    rounds = {}
    for number in range(1, QUICK.rounds + 1):
        for request in confirm.round_requests(contest, number, SETTINGS, f"s{number}"):
            rounds |= {item.digest: item for item in world.visit(request)}
    decided = confirm.decide(contest, rounds, QUICK, DEVICE)
    return {item.key: item for item in decided if item.rounds}


def _large(decisions: dict[str, Decision]) -> list[Decision]:
    return [item for key, item in decisions.items() if int(key.removeprefix("M=")) > LARGE]


def test_a_candidate_that_only_beats_the_slower_form_is_not_promoted_there() -> None:
    decisions = _decisions(candidate_speed=0.5, form_speed_at_large=0.49)
    assert _large(decisions), "the large keys were timed"
    assert {item.verdict for item in _large(decisions)} == {"kept_incumbent"}


def test_a_candidate_that_beats_every_form_is_promoted() -> None:
    decisions = _decisions(candidate_speed=0.3, form_speed_at_large=0.6)
    assert {item.verdict for item in decisions.values()} == {"promoted"}
    assert all(1.8 < item.estimates[0].ratio < 2.2 for item in _large(decisions)), "against the faster form"

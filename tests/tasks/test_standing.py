"""Earlier decisions that still stand are carried over; only stale or new keys ask for rounds."""

from dataclasses import replace
from typing import Any

import pytest
from prefect.logging import disable_run_logger

from fib_core import confirm, dispatch, ledger
from fib_core.decision.contest import Contest
from fib_core.errors import StoreRefused
from fib_core.publish import index_key
from fib_core.workloads.axisclass import class_key
from schemas.canonical import canonical_bytes
from schemas.decision import Decision
from schemas.index import DispatchIndex
from tasks.campaigns import narrowed
from tasks.settings import Settings
from tasks.standing import standing_decisions
from tasks.wiring import House
from tests.core.road import walk
from tests.core.world import DEVICE, ENVIRONMENT, SETTINGS, World, gemm, solution
from tests.fakes.memory_store import MemoryStore
from tests.runtime.published import point

DEFINITION = gemm()
FAST = solution("fast", DEFINITION)
TIMED = [item for item in walk(World({"old": 1.0, "fast": 0.5}), [FAST]).contest.timed if item.split == "train"]
# Fast everywhere but at the last timed point, so that one key keeps the incumbent after its rounds.
WALKED = walk(World({"old": 1.0, "fast": 0.5}, per_workload={("fast", TIMED[-1].workload.digest): 2.0}), [FAST])
VERDICTS = ("promoted", "kept_incumbent")
DECIDED = {item.key: item for item in WALKED.decisions if item.verdict in VERDICTS and item.rounds}
FACTS = {digest: replace(item, timer="monotonic") for digest, item in WALKED.measured.items()}


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with disable_run_logger():
        yield


def house(store: MemoryStore | None = None, environment=ENVIRONMENT, **settings: Any) -> House:
    return House(Settings(**settings), store or published(), None, None, environment)  # type: ignore[arg-type]


def index_of(decisions: list[Decision], facts=None) -> DispatchIndex:
    known = FACTS if facts is None else facts
    return dispatch.build(WALKED.snapshot, decisions, WALKED.solutions, "quick", DEVICE, {}, known)


def published(index: DispatchIndex | None = None, decisions: list[Decision] | None = None) -> MemoryStore:
    store = MemoryStore()
    for item in WALKED.decisions if decisions is None else decisions:
        ledger.save(store, "decisions", item)
    index = index or index_of(WALKED.decisions)
    store.put_once(index_key(index.digest), canonical_bytes(index.model_dump(mode="json")))
    point(store, index.digest, "quick")
    return store


def asked_keys(contest: Contest, standing: dict[str, Decision]) -> set[str]:
    """Keys whose train workloads the next rounds would bring to a device."""
    rest = narrowed(contest, standing)
    train = {item.workload.digest for item in contest.placed if item.split == "train"}
    requests = confirm.round_requests(rest, 1, SETTINGS, "seed")
    asked = [workload for request in requests for workload in request.workloads if workload.digest in train]
    return {class_key(workload.axes) for workload in asked}


def timed_keys() -> set[str]:
    return {class_key(item.workload.axes) for item in WALKED.contest.timed if item.split == "train"}


def test_with_nothing_changed_every_verdict_stands_and_no_key_asks_for_rounds() -> None:
    standing = standing_decisions(house(), WALKED.contest)
    assert standing == DECIDED
    assert {item.verdict for item in standing.values()} == set(VERDICTS)
    assert asked_keys(WALKED.contest, standing) == set()


def test_without_a_channel_nothing_stands_and_every_timed_key_asks_for_rounds() -> None:
    standing = standing_decisions(house(MemoryStore()), WALKED.contest)
    assert standing == {}
    assert asked_keys(WALKED.contest, standing) == timed_keys()


def test_one_stale_entry_among_several_and_only_its_key_asks_for_rounds() -> None:
    victim = next(item for item in WALKED.decisions if item.verdict == "promoted")
    old = replace(FACTS[victim.digest], library_versions={"torch": "1.9"})
    store = published(index_of(WALKED.decisions, FACTS | {victim.digest: old}))
    standing = standing_decisions(house(store), WALKED.contest)
    assert standing == {key: item for key, item in DECIDED.items() if key != victim.key}
    assert asked_keys(WALKED.contest, standing) == {victim.key}


def test_a_minor_update_confirms_nothing_again_and_a_major_one_everything() -> None:
    minor = ENVIRONMENT.model_copy(update={"libraries": {"torch": "2.99"}})
    assert standing_decisions(house(environment=minor), WALKED.contest) == DECIDED
    major = ENVIRONMENT.model_copy(update={"libraries": {"torch": "3.0"}})
    assert standing_decisions(house(environment=major), WALKED.contest) == {}


def test_another_device_class_profile_timer_or_rule_is_another_question(monkeypatch) -> None:
    elsewhere = ENVIRONMENT.model_copy(update={"device_class": "x86-64-v4/1t"})
    assert standing_decisions(house(environment=elsewhere), WALKED.contest) == {}
    assert standing_decisions(house(profile="full"), WALKED.contest) == {}
    otherwise = {digest: replace(item, timer="perf_counter") for digest, item in FACTS.items()}
    assert standing_decisions(house(published(index_of(WALKED.decisions, otherwise))), WALKED.contest) == {}
    stood = house()
    monkeypatch.setattr("tasks.standing.rules_digest", lambda profile: "sha256:" + "0" * 64)
    assert standing_decisions(stood, WALKED.contest) == {}
    monkeypatch.undo()
    monkeypatch.setattr("tasks.standing.POLICY_VERSION", 99)
    assert standing_decisions(stood, WALKED.contest) == {}


def changed(contest: Contest) -> dict[str, Contest]:
    (finalist,) = contest.finalists
    other = finalist.model_copy(update={"solution_digest": "sha256:" + "1" * 64})
    assert contest.incumbent is not None
    incumbent = contest.incumbent.model_copy(update={"solution_digest": "sha256:" + "2" * 64})
    return {
        "changed bytes of the finalist": replace(contest, finalists=(other,)),
        "one more finalist": replace(contest, finalists=(finalist, other)),
        "another incumbent": replace(contest, incumbent=incumbent),
        "one more form": replace(contest, forms=(incumbent,)),
        "another stress workload": replace(
            contest, timed=tuple(item for item in contest.timed if item.split != "stress")
        ),
        "blocked": replace(contest, blocked="no holdout"),
    }


@pytest.mark.parametrize("change", changed(WALKED.contest))
def test_a_contest_that_asks_something_else_is_confirmed_again(change: str) -> None:
    assert standing_decisions(house(), changed(WALKED.contest)[change]) == {}


def test_why_a_key_is_confirmed_again_is_said_in_words() -> None:
    from tasks.standing import _decided, _why_not

    known = next(item for item in _decided(index_of(WALKED.decisions).definitions[0]) if item.solution_digest)
    assert _why_not(house(), WALKED.contest, known) == ""
    contest = changed(WALKED.contest)["changed bytes of the finalist"]
    newer = ENVIRONMENT.model_copy(update={"libraries": {"torch": "3.0"}})
    said = _why_not(house(environment=newer), contest, known)
    assert "no solution has the bytes of" in said
    assert "measured with torch 2, now 3.0" in said
    assert "finalists, incumbents or workloads are not the same" in said


def test_another_definition_has_no_standing_decisions() -> None:
    other = replace(WALKED.contest, definition=gemm(name="gemm_n8_k4", constraints=("M >= 1",)))
    assert standing_decisions(house(), other) == {}


def test_a_train_workload_that_is_new_asks_only_at_its_own_key() -> None:
    contest = WALKED.contest
    gone = next(item for item in contest.timed if item.split == "train")
    key = class_key(gone.workload.axes)
    smaller = replace(contest, timed=tuple(item for item in contest.timed if item is not gone))
    standing = standing_decisions(house(), smaller)
    assert standing == {name: item for name, item in DECIDED.items() if name != key}


@pytest.mark.parametrize("verdict", ["not_enough_rounds", "invalid"])
def test_what_ended_without_a_verdict_never_stands(verdict: str) -> None:
    victim = next(item for item in WALKED.decisions if item.verdict == "promoted")
    spoiled = victim.model_copy(update={"verdict": verdict, "solution_digest": None, "reason": "not enough rounds"})
    decisions = [spoiled if item is victim else item for item in WALKED.decisions]
    facts = FACTS | {spoiled.digest: FACTS[victim.digest]}
    standing = standing_decisions(house(published(index_of(decisions, facts), decisions)), WALKED.contest)
    assert victim.key not in standing
    assert standing.keys() == DECIDED.keys() - {victim.key}


def test_a_campaign_that_was_asked_for_is_not_answered_by_an_earlier_one_but_by_a_later() -> None:
    assert standing_decisions(house(campaign=1), WALKED.contest) == {}
    later = [item.model_copy(update={"campaign": 4}) for item in WALKED.decisions]
    facts = {new.digest: FACTS[old.digest] for new, old in zip(later, WALKED.decisions, strict=True) if old.evaluations}
    store = published(index_of(later, facts), later)
    assert standing_decisions(house(store, campaign=4), WALKED.contest).keys() == DECIDED.keys()
    assert standing_decisions(house(store), WALKED.contest).keys() == DECIDED.keys()


def test_a_decision_that_is_gone_is_confirmed_again_and_a_damaged_one_is_said() -> None:
    store = published()
    victim = next(iter(DECIDED.values()))
    name = ledger.object_key("decisions", victim.digest)
    body = store.objects.pop(name)
    assert standing_decisions(house(store), WALKED.contest).keys() == DECIDED.keys() - {victim.key}
    store.objects[name] = body.replace(b'"rounds":8', b'"rounds":9')
    with pytest.raises(StoreRefused, match="damaged"):
        standing_decisions(house(store), WALKED.contest)


def test_the_next_index_over_carried_decisions_is_the_same_index() -> None:
    standing = standing_decisions(house(), WALKED.contest)
    rest = [item for item in WALKED.decisions if item.key not in standing]
    assert index_of([*standing.values(), *rest]).digest == index_of(WALKED.decisions).digest

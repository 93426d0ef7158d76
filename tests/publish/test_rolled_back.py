"""A rollback sticks: no run publishes again what it left, and what somebody named by hand since is free again."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fib_core.errors import FibError, PublishConflict, RolledBack
from fib_core.publication import history
from fib_core.publication.rolled_back import left_by
from fib_core.publish import promote, rollback
from tests.fakes.memory_store import MemoryStore
from tests.publish.breaking_store import interrupted
from tests.publish.material import Made, made, moves, put, terms

GOOD, BAD, NEW = made("good"), made("bad"), made("new")


def digest(item: Made) -> str:
    return item[0].digest


@pytest.fixture
def store() -> MemoryStore:
    """Good, then bad, then back to good."""
    found = MemoryStore()
    for hour, item in enumerate((GOOD, BAD)):
        put(found, item, under=terms(hour))
    rollback(found, "dev", None, terms(2))
    return found


def test_what_a_rollback_left_is_not_published_again_and_nothing_is_written(store: MemoryStore) -> None:
    before = dict(store.objects)
    with pytest.raises(RolledBack) as refused:
        put(store, BAD, under=terms(3))
    assert f"{digest(BAD)} was rolled back from dev at {terms(2).now}; nothing new" in str(refused.value)
    assert "fib run --campaign N" in str(refused.value)
    assert f"fib rollback --channel dev --to {digest(BAD)}" in str(refused.value)
    assert store.objects == before


def test_another_index_and_another_channel_are_published_after_a_rollback(store: MemoryStore) -> None:
    put(store, BAD, "nightly", terms(3))
    put(store, NEW, under=terms(3))
    assert (moves(store, "dev")[-1], moves(store, "nightly")) == (digest(NEW), [digest(BAD)])


def test_publishing_again_what_a_rollback_went_back_to_changes_nothing(store: MemoryStore) -> None:
    assert put(store, GOOD, under=terms(3)).number == 3


def test_a_publication_after_the_rollback_does_not_let_the_clock_bring_the_old_index_back(store: MemoryStore) -> None:
    put(store, NEW, under=terms(3))
    with pytest.raises(RolledBack, match=digest(BAD)):
        put(store, BAD, under=terms(4))
    put(store, GOOD, under=terms(5))
    assert moves(store, "dev")[-1] == digest(GOOD), "replaced by a publication, not left by a rollback"


@pytest.mark.parametrize("by", ["rollback", "promote"])
def test_naming_it_by_hand_frees_it(store: MemoryStore, by: str) -> None:
    if by == "rollback":
        rollback(store, "dev", digest(BAD), terms(3))
    else:
        put(store, BAD, "nightly", terms(3))
        promote(store, "nightly", "dev", terms(3))
    put(store, NEW, under=terms(4))
    assert put(store, BAD, under=terms(5)).number == 6


def test_a_rollback_over_several_moves_leaves_all_of_them(store: MemoryStore) -> None:
    put(store, NEW, under=terms(3))
    rollback(store, "dev", digest(GOOD), terms(4))
    for item in (BAD, NEW):
        with pytest.raises(RolledBack, match=digest(item)):
            put(store, item, under=terms(5))


def test_of_two_rollbacks_the_one_that_left_it_is_named(store: MemoryStore) -> None:
    put(store, NEW, under=terms(3))
    put(store, made("newest"), under=terms(4))
    rollback(store, "dev", digest(NEW), terms(5))
    rollback(store, "dev", digest(GOOD), terms(6))
    for item, hour in ((made("newest"), 5), (NEW, 6), (BAD, 2)):
        move = left_by(history.chain(store, history.current(store, "dev")), digest(item))
        assert move is not None
        assert move.published_at == terms(hour).now


def test_a_rollback_in_the_moment_of_the_swap_is_a_conflict_and_stands() -> None:
    found = MemoryStore()
    for hour, item in enumerate((GOOD, BAD)):
        put(found, item, under=terms(hour))
    raced = interrupted(found, lambda: rollback(found, "dev", None, terms(2)))
    with pytest.raises(PublishConflict):
        put(raced, NEW, under=terms(3))
    assert moves(found, "dev") == [digest(GOOD), digest(BAD), digest(GOOD)]


def test_what_lies_behind_a_broken_history_bars_nothing(store: MemoryStore) -> None:
    back = history.current(store, "dev")
    put(store, NEW, under=terms(3))
    with pytest.raises(RolledBack):
        put(store, BAD, under=terms(4))
    del store.objects[history.pointer_key(back.digest)]
    assert put(store, BAD, under=terms(4)).index_digest == digest(BAD)


ITEMS = [made(note) for note in "abcd"]
MOVES = st.tuples(st.sampled_from(["publish", "back", "to", "promote"]), st.integers(0, len(ITEMS) - 1))


def act(store: MemoryStore, what: str, item: Made, hour: float) -> None:
    under = terms(hour, proof=lambda get, index_digest: None)
    if what == "publish":
        put(store, item, under=under)
    elif what == "promote":
        promote(store, f"from-{ITEMS.index(item)}", "dev", under)
    else:
        rollback(store, "dev", None if what == "back" else digest(item), under)


@settings(deadline=None, max_examples=60)
@given(st.lists(MOVES, max_size=14))
@example([("publish", 1), ("publish", 2), ("publish", 0), ("to", 1), ("to", 0)])
def test_barred_is_exactly_what_a_rollback_left_and_nobody_named_by_hand_since(asked: list[tuple[str, int]]) -> None:
    found = MemoryStore()
    for number, item in enumerate(ITEMS):
        put(found, item, f"from-{number}", terms(proof=lambda get, index_digest: None))
    barred: set[str] = set()
    for hour, (what, number) in enumerate(asked):
        known = history.look(found, "dev").pointer
        named = moves(found, "dev") if known else []
        wanted = digest(ITEMS[number])
        try:
            act(found, what, ITEMS[number], hour)
            assert what != "publish" or wanted not in barred or named[-1] == wanted
        except RolledBack:
            assert what == "publish"
            assert wanted in barred
        except FibError:
            assert what in {"back", "to"}
        now = history.look(found, "dev").pointer
        if now is None or now == known:
            continue
        if now.action == "rollback":
            last = len(named) - 1 - named[::-1].index(now.index_digest)
            barred |= set(named[last:])
        barred.discard(now.index_digest)
    if (now := history.look(found, "dev").pointer) is not None:
        chain = list(history.chain(found, now))
        assert {digest(item) for item in ITEMS if left_by(chain, digest(item))} == barred

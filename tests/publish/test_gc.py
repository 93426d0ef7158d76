"""Collection: nothing that a channel reaches, or a publisher in flight needs, is ever deleted."""

import pytest

from fib_core import ledger
from fib_core.errors import ContractError, ObjectMissing, PublishConflict, StoreRefused
from fib_core.publication import condemned, history
from fib_core.publication.garbage import COLLECTED, collect
from fib_core.publish import index_key, rollback
from tests.fakes.memory_store import MemoryStore
from tests.publish.breaking_store import interrupted
from tests.publish.material import at, made, moves, put, terms, whole
from tests.runtime.published import SCALE, point

GRACE_S = 24 * 3600


def gc(store, hours, keep_days=1.0, dry_run=False):
    return collect(store, at(hours), keep_days, GRACE_S, dry_run)


def collectable(store):
    return {key for key in store.objects if key.startswith(COLLECTED)}


@pytest.fixture
def aged(store):
    """Three indexes; the first is unreached 25 h after the second took its place and a third came."""
    put(store, made("1", fused=True), under=terms(0))
    put(store, made("2"), under=terms(1))
    put(store, made("3", dps=True), under=terms(2))
    return store


def test_what_no_channel_reaches_is_marked_first_and_deleted_a_grace_later(aged):
    first = index_key(made("1", fused=True)[0].digest)
    found = gc(aged, 30)
    assert first in found.marked
    assert found.deleted == ()
    assert first in aged.objects
    assert gc(aged, 40).waiting == found.marked
    again = gc(aged, 54)
    assert again.deleted == found.marked
    assert first not in aged.objects
    assert list(condemned.marks(aged)) == []
    assert whole(aged, "dev").number == 3


def test_shared_solutions_and_what_may_be_rolled_back_to_stay(aged):
    before = dict(aged.objects)
    for hours in (1000, 2000, 3000):
        gc(aged, hours)
    gone = before.keys() - aged.objects.keys()
    only_first = set(made("1", fused=True)[1]) - set(made("2")[1]) - set(made("3", dps=True)[1])
    expected = {index_key(made("1", fused=True)[0].digest)} | {f"solutions/{item[7:]}.json" for item in only_first}
    assert {key for key in gone if not key.startswith("signatures/")} == expected
    assert rollback(aged, "dev", None, terms(3001)).index_digest == made("2")[0].digest
    with pytest.raises(ObjectMissing):
        rollback(aged, "dev", made("1", fused=True)[0].digest, terms(3002))
    assert len(moves(aged, "dev")) == 4, "the history names what was collected"


def test_every_key_is_counted_once_and_a_dry_run_changes_nothing(aged):
    for hours in (30, 40, 60):
        before = dict(aged.objects)
        planned = gc(aged, hours, dry_run=True)
        assert aged.objects == before
        counted = planned.reached + len(planned.deleted) + len(planned.waiting) + len(planned.marked)
        assert counted == len(collectable(aged))
        assert gc(aged, hours) == planned


def test_an_index_that_was_current_within_the_kept_days_stays(aged):
    for hours in (1000, 2000):
        assert gc(aged, hours, keep_days=365).marked == ()
    assert index_key(made("1", fused=True)[0].digest) in aged.objects


def test_the_record_is_never_deleted(store):
    ledger.save(store, "definitions", SCALE)
    for key in ("evaluations/x.json", "evaluations/by-job/x.json", "decisions/x.json", "snapshots/x.json", "foreign/x"):
        store.put_once(key, b"{}")
    store.put_once("solutions/" + "0" * 64 + ".json", b"orphan")
    before = set(store.objects)
    gc(store, 100)
    gc(store, 200)
    assert before - set(store.objects) == {"solutions/" + "0" * 64 + ".json"}


def test_what_a_beaten_publisher_wrote_is_collected_and_the_winner_stays(store):
    put(store, made("0"))

    class Raced(MemoryStore):
        def swap(self, key, body, expected_etag):
            put(store, made("rival"), under=terms(1))
            return super().swap(key, body, expected_etag)

    raced = Raced()
    raced.objects = store.objects
    with pytest.raises(PublishConflict):
        put(raced, made("ours", fused=True), under=terms(1))
    orphans = collectable(store)
    gc(store, 100)
    gc(store, 200)
    gone = orphans - collectable(store)
    assert {key.partition("/")[0] for key in gone} == {"indexes", "solutions", "signatures"}
    assert index_key(made("ours", fused=True)[0].digest) in gone
    whole(store, "dev")


def test_a_publisher_takes_marked_objects_back_at_any_age_of_the_mark(aged):
    again = made("1", fused=True)
    gc(aged, 30)
    put(aged, again, "back", under=terms(53.9))
    assert index_key(again[0].digest) not in gc(aged, 54).deleted
    assert whole(aged, "back").index_digest == again[0].digest


def test_a_collection_just_before_the_swap_leaves_the_signature_of_the_index(aged):
    again = made("1", fused=True)
    gc(aged, 30)
    # The first swap takes the objects out of the mark, the second moves the pointer.
    put(interrupted(aged, lambda: gc(aged, 54), swap=2), again, "back", under=terms(53))
    assert whole(aged, "back").index_digest == again[0].digest


def test_a_publisher_whose_objects_a_collection_has_claimed_is_stopped_until_it_ends(aged):
    gc(aged, 30)
    (mark,) = condemned.marks(aged)
    assert condemned.claim(aged, mark, at(60))
    with pytest.raises(PublishConflict, match="fib gc --delete` finish"):
        put(aged, made("1", fused=True), "late", under=terms(60))
    put(aged, made("3", dps=True), "other", under=terms(60))
    assert gc(aged, 60.5).deleted == (), "another collection may still be at work"
    assert gc(aged, 61.5).deleted != (), "it must have died"
    put(aged, made("1", fused=True), "late", under=terms(62))
    whole(aged, "late")


def test_of_a_publisher_and_a_collection_that_want_the_same_mark_one_is_first(aged):
    gc(aged, 30)
    (mark,) = condemned.marks(aged)
    index_digest = made("1", fused=True)[0].digest
    condemned.take_back(aged, frozenset({index_key(index_digest)}), f"signatures/{index_digest[7:]}/")
    assert not condemned.claim(aged, mark, at(60)), "the mark is not what the collection read"
    (changed,) = condemned.marks(aged)
    assert condemned.claim(aged, changed, at(60))
    with pytest.raises(PublishConflict):
        condemned.take_back(aged, frozenset(changed.record.keys), "signatures/none/")


def test_what_was_deleted_between_writing_and_proof_is_missed_by_the_proof(aged):
    again = made("1", fused=True)
    gc(aged, 30)

    class Slow(MemoryStore):
        """A whole collection passes just before the publisher looks at marks."""

        def keys(self, prefix):
            if prefix == f"{condemned.PREFIX}/":
                gc(aged, 54)
            return super().keys(prefix)

    slow = Slow()
    slow.objects = aged.objects
    with pytest.raises((ContractError, ObjectMissing, StoreRefused)):
        put(slow, again, under=terms(54))
    assert whole(aged, "dev").index_digest == made("3", dps=True)[0].digest
    put(aged, again, under=terms(55))
    whole(aged, "dev")


@pytest.mark.parametrize("damage", ["channel", "index", "history"])
def test_where_it_is_not_known_what_is_reached_nothing_is_deleted(aged, damage):
    gc(aged, 30)
    pointer = history.current(aged, "dev")
    key = {
        "channel": "channels/dev.json",
        "index": index_key(pointer.index_digest),
        "history": history.pointer_key(pointer.previous_pointer),
    }[damage]
    aged.objects[key] = b"{}"
    before = dict(aged.objects)
    with pytest.raises((StoreRefused, ObjectMissing)):
        gc(aged, 60)
    assert aged.objects == before


def test_a_collection_that_was_killed_is_finished_by_the_next(aged):
    found = gc(aged, 30)

    class Dying(MemoryStore):
        left = 2

        def delete(self, key):
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            super().delete(key)

    dying = Dying()
    dying.objects = aged.objects
    with pytest.raises(KeyboardInterrupt):
        gc(dying, 60)
    assert gc(aged, 60.5).deleted == ()
    rest = gc(aged, 61)
    assert len(rest.deleted) == len(found.marked) - 2
    assert gc(aged, 62).deleted == ()
    whole(aged, "dev")


def test_indexes_of_a_pointer_that_knew_no_history_stay(store):
    put(store, made("1"), "x")
    put(store, made("2"), "y")
    store.delete("channels/x.json")
    store.delete("channels/y.json")
    point(store, made("1")[0].digest, "dev")
    point(store, made("2")[0].digest, "dev")
    gc(store, 100)
    gc(store, 200)
    assert {index_key(made(note)[0].digest) for note in "12"} <= set(store.objects)

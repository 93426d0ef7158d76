"""History: complete, listable, and moved by the same compare-and-swap as the pointer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fib_core.errors import ContractError, DeviceError, ObjectMissing, PublishConflict, StoreRefused
from fib_core.publication import history
from fib_core.publish import Terms, publish
from schemas.canonical import canonical_bytes
from schemas.publication import ChannelPointer
from tests.fakes.memory_store import MemoryStore
from tests.publish.material import SIGNER, at, made, moves, put, save_definitions, terms, whole
from tests.runtime.published import point


def test_every_index_that_a_channel_named_is_listed_in_order(store):
    items = [made(note) for note in "1234"]
    for hour, item in enumerate(items):
        put(store, item, under=terms(hour))
    assert moves(store, "dev") == [record.digest for record, _ in items]
    times = [pointer.published_at for pointer in history.chain(store, history.current(store, "dev"))]
    assert times == [at(hour) for hour in (3, 2, 1, 0)]
    assert whole(store, "dev").number == 4


def test_channels_are_listed_and_keep_histories_of_their_own(store):
    put(store, made("1"), "dev")
    put(store, made("2"), "nightly")
    put(store, made("3"), "dev")
    assert history.channels(store) == ["dev", "nightly"]
    assert (len(moves(store, "dev")), len(moves(store, "nightly"))) == (2, 1)


def test_a_history_goes_on_from_a_pointer_that_knew_none(store):
    old, new = made("old"), made("new")
    put(store, old, "elsewhere")
    point(store, old[0].digest, "dev")
    before = store.get("channels/dev.json").body
    put(store, new)
    assert moves(store, "dev") == [old[0].digest, new[0].digest]
    archived = history.chain(store, history.current(store, "dev"))
    assert [canonical_bytes(item.model_dump(mode="json")) for item in archived][1] == before


def test_a_pointer_without_the_new_fields_keeps_its_digest():
    plain = {"schema_version": "1", "index_digest": "sha256:" + "1" * 64, "previous": None, "published_at": at()}
    assert ChannelPointer.model_validate(plain).model_dump(mode="json") == plain


@pytest.mark.parametrize("damage", ["gone", "other bytes", "not json"])
def test_a_broken_chain_is_refused_by_name_and_a_sound_one_is_not(store, damage):
    first = put(store, made("1"))
    put(store, made("2"))
    key = history.pointer_key(first.digest)
    sound = store.objects[key]
    store.objects[key] = {"other bytes": sound.replace(b"2026", b"2025"), "not json": b"{"}.get(damage, b"")
    if damage == "gone":
        del store.objects[key]
    with pytest.raises(StoreRefused, match=first.digest[7:]):
        list(history.chain(store, history.current(store, "dev")))
    store.objects[key] = sound
    assert len(list(history.chain(store, history.current(store, "dev")))) == 2


def test_a_pointer_of_another_channel_is_no_part_of_a_history(store):
    put(store, made("1"), "nightly")
    theirs = put(store, made("2"), "nightly", terms(1))
    assert len(list(history.chain(store, theirs))) == 2
    forged = theirs.model_copy(update={"channel": "dev"})
    with pytest.raises(StoreRefused, match="does not follow"):
        list(history.chain(store, forged))


def test_a_beaten_publisher_leaves_no_line_in_the_history(store):
    put(store, made("1"))
    rival, ours = made("rival"), made("ours")

    class Raced(MemoryStore):
        def swap(self, key, body, expected_etag):
            put(store, rival)
            return super().swap(key, body, expected_etag)

    raced = Raced()
    raced.objects = store.objects
    with pytest.raises(PublishConflict, match=f"to {rival[0].digest}"):
        put(raced, ours)
    assert moves(store, "dev") == [made("1")[0].digest, rival[0].digest]


class Unlucky(MemoryStore):
    """The swap happens, its answer does not arrive; then, perhaps, somebody moves on."""

    def __init__(self, happens: bool, meanwhile=None) -> None:
        super().__init__()
        self.happens, self.meanwhile = happens, meanwhile

    def swap(self, key, body, expected_etag):
        if self.happens:
            super().swap(key, body, expected_etag)
        if self.meanwhile:
            meanwhile, self.happens, self.meanwhile = self.meanwhile, True, None
            meanwhile()
        raise DeviceError("no answer")


def test_a_swap_whose_answer_was_lost_is_recognised_as_our_own():
    store = Unlucky(happens=True)
    assert put(store, made()).index_digest == made()[0].digest
    assert whole(store, "dev").number == 1
    with pytest.raises(DeviceError):
        put(Unlucky(happens=False), made())


def test_a_swap_whose_answer_was_lost_is_ours_even_if_somebody_moved_on_since():
    def move_on():
        honest = MemoryStore()
        honest.objects = store.objects
        put(honest, made("later"))

    store = Unlucky(happens=True, meanwhile=move_on)
    assert put(store, made("ours")).index_digest == made("ours")[0].digest
    assert moves(store, "dev") == [made("ours")[0].digest, made("later")[0].digest]

    def move_first():
        honest = MemoryStore()
        honest.objects = lost.objects
        put(honest, made("theirs"))

    lost = Unlucky(happens=False, meanwhile=move_first)
    with pytest.raises(DeviceError):
        put(lost, made("ours"))
    assert moves(lost, "dev") == [made("theirs")[0].digest]


def test_a_failed_proof_moves_nothing_and_names_why(store):
    put(store, made("1"))

    def refuse(get, index_digest):
        get(f"indexes/{index_digest[7:]}.json")
        raise ContractError("the entry rows=4 cannot be reached")

    with pytest.raises(ContractError, match="rows=4 cannot be reached"):
        put(store, made("2"), under=terms(proof=refuse))
    assert moves(store, "dev") == [made("1")[0].digest]


def test_the_real_reader_misses_a_definition_that_the_store_does_not_hold(store):
    with pytest.raises((ContractError, ObjectMissing, StoreRefused)):
        publish(store, *made(), "dev", terms())
    assert history.look(store, "dev").pointer is None
    save_definitions(store)
    assert publish(store, *made(), "dev", terms()).number == 1


def test_a_torn_object_under_the_right_key_is_caught_before_the_pointer_moves(store):
    record, solutions = made()
    save_definitions(store)
    store.put_once(record.solutions[0].object_key, b'{"definition_digest": "sha2')
    with pytest.raises((ContractError, StoreRefused)):
        publish(store, record, solutions, "dev", terms())
    assert history.look(store, "dev").pointer is None


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden"])
def test_a_channel_name_never_leaves_its_folder(store, name):
    with pytest.raises(ContractError, match="not plain"):
        put(store, made(), name)


@settings(deadline=None)
@given(notes=st.lists(st.sampled_from("abc"), min_size=1, max_size=8))
def test_moving_to_what_is_current_adds_nothing_and_every_other_move_adds_one(notes):
    store = MemoryStore()
    expected = [note for place, note in enumerate(notes) if place == 0 or notes[place - 1] != note]
    for hour, note in enumerate(notes):
        put(store, made(note), under=Terms(lambda get, digest: None, at(hour), SIGNER))
    assert moves(store, "dev") == [made(note)[0].digest for note in expected]
    assert len({item.digest for item in history.chain(store, history.current(store, "dev"))}) == len(expected)

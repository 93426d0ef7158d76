"""Promotion and rollback move a pointer under the terms of a publication, or move nothing."""

import pytest

from fib_core.errors import ContractError, ObjectMissing, PublishConflict, StoreRefused
from fib_core.publication import history
from fib_core.publish import index_key, promote, publish, rollback
from tests.fakes.memory_store import MemoryStore
from tests.publish.material import OTHER, SIGNER, made, moves, put, save_definitions, terms, whole
from tests.runtime.published import point

FULL = made("full", profile="full")


def digest(note="1"):
    return made(note)[0].digest


def test_a_promoted_index_is_the_same_index_in_another_channel(store):
    put(store, FULL)
    moved = promote(store, "dev", "stable", terms(1, trusted=True))
    assert (moved.index_digest, moved.channel, moved.action) == (FULL[0].digest, "stable", "promote")
    assert whole(store, "stable").index_digest == whole(store, "dev").index_digest


def test_promoting_again_changes_nothing(store):
    put(store, FULL)
    first = promote(store, "dev", "stable", terms(1))
    before = dict(store.objects)
    assert promote(store, "dev", "stable", terms(2)) == first
    assert store.objects == before


def test_stable_takes_no_quick_index_by_promotion_or_rollback(store):
    put(store, made())
    before = dict(store.objects)
    with pytest.raises(ContractError, match="stable takes no index of the profile quick"):
        promote(store, "dev", "stable", terms(1))
    assert store.objects == before
    point(store, digest(), "stable")
    point(store, FULL[0].digest, "stable")
    put(store, FULL, "elsewhere")
    with pytest.raises(ContractError, match="stable takes no index of the profile quick"):
        rollback(store, "stable", None, terms(1))
    assert promote(store, "dev", "nightly", terms(1)).index_digest == digest()


def test_promoting_from_or_to_what_is_not_there_is_named(store):
    with pytest.raises(ObjectMissing, match="no channel 'dev'"):
        promote(store, "dev", "stable", terms())
    put(store, FULL)
    with pytest.raises(ContractError, match="not plain"):
        promote(store, "dev", "../stable", terms())


@pytest.mark.parametrize("kind", ["indexes", "solutions", "definitions"])
def test_an_index_that_is_not_whole_is_not_promoted(store, kind):
    put(store, FULL)
    key = next(name for name in store.objects if name.startswith(kind))
    sound = store.objects.pop(key)
    with pytest.raises((ContractError, ObjectMissing, StoreRefused)):
        promote(store, "dev", "stable", terms(1))
    store.objects[key] = sound[:-1]
    with pytest.raises((ContractError, StoreRefused)):
        promote(store, "dev", "stable", terms(1))
    assert history.look(store, "stable").pointer is None
    store.objects[key] = sound
    assert promote(store, "dev", "stable", terms(1)).index_digest == FULL[0].digest


def test_a_promotion_is_proved_again_before_it_moves(store):
    put(store, FULL)

    def refuse(get, index_digest):
        raise ContractError("unreachable here")

    with pytest.raises(ContractError, match="unreachable here"):
        promote(store, "dev", "stable", terms(1, proof=refuse))
    assert history.look(store, "stable").pointer is None


@pytest.mark.parametrize("signer", [None, OTHER])
def test_what_nobody_here_trusts_is_promoted_only_by_vouching_for_it(store, signer):
    put(store, FULL, under=terms(0, signer))
    with pytest.raises(ContractError, match=r"no signature by a key that counts here.*--sign"):
        promote(store, "dev", "stable", terms(1, trusted=True))
    assert history.look(store, "stable").pointer is None
    promote(store, "dev", "stable", terms(1, trusted=True), vouch=True)
    assert whole(store, "stable").index_digest == FULL[0].digest


def test_a_source_that_was_put_back_to_an_old_signed_index_is_not_promoted(store):
    put(store, made("old", profile="full"))
    put(store, FULL, under=terms(1))
    forged = history.current(store, "dev").model_copy(update={"index_digest": made("old", profile="full")[0].digest})
    store.objects[history.channel_key("dev")] = forged.model_dump_json().encode()
    with pytest.raises(ContractError, match=r"channel pointer.*no signature"):
        promote(store, "dev", "stable", terms(2, trusted=True))


@pytest.mark.parametrize("signer", [None, OTHER])
def test_a_publisher_never_writes_what_its_own_consumers_would_refuse(store, signer):
    under = terms(0, signer, trusted=True)
    with pytest.raises(ContractError, match="only what the trusted keys signed is followed here"):
        put(store, made(), under=under)
    assert [key for key in store.objects if not key.startswith("definitions/")] == []


def test_a_signed_channel_is_not_continued_without_a_key(store):
    put(store, made("1"))
    with pytest.raises(ContractError, match="is signed and no signing key is set"):
        put(store, made("2"), under=terms(1, signer=None))
    assert moves(store, "dev") == [digest("1")]
    put(store, made("2"), "other", under=terms(1, signer=None))
    put(store, made("3"), "other", under=terms(2, signer=None))
    assert len(moves(store, "other")) == 2, "control: a channel that was never signed goes on unsigned"


def test_publishing_the_same_index_with_a_key_signs_it_and_then_stands(store):
    put(store, made(), under=terms(0, signer=None))
    signed = put(store, made(), under=terms(1))
    assert (signed.number, signed.index_digest) == (2, digest())
    assert put(store, made(), under=terms(2)) == signed
    whole(store, "dev")


def test_rollback_goes_to_the_last_other_index_and_a_second_one_back_again(store):
    put(store, made("1"))
    put(store, made("2"), under=terms(1))
    assert rollback(store, "dev", None, terms(2)).index_digest == digest("1")
    assert rollback(store, "dev", None, terms(3)).index_digest == digest("2")
    assert moves(store, "dev") == [digest(note) for note in "1212"]
    assert whole(store, "dev").action == "rollback"


def test_rollback_after_signing_anew_does_not_go_to_the_same_index(store):
    put(store, made("1"), under=terms(0, signer=None))
    put(store, made("2"), under=terms(1, signer=None))
    put(store, made("2"), under=terms(2))
    assert rollback(store, "dev", None, terms(3), vouch=True).index_digest == digest("1")


def test_rollback_reaches_every_index_of_the_history_and_no_other(store):
    for hour, note in enumerate("123"):
        put(store, made(note), under=terms(hour))
    put(store, made("foreign"), "nightly")
    assert rollback(store, "dev", digest("1"), terms(4)).index_digest == digest("1")
    with pytest.raises(ObjectMissing, match="never named"):
        rollback(store, "dev", digest("foreign"), terms(5))
    with pytest.raises(ObjectMissing, match="no channel 'none'"):
        rollback(store, "none", None, terms(5))


def test_rollback_without_a_past_changes_nothing(store):
    put(store, made())
    with pytest.raises(ContractError, match="nothing to go back to"):
        rollback(store, "dev", None, terms(1))
    assert moves(store, "dev") == [digest()]


def test_of_two_promotions_from_the_same_state_one_wins_and_the_other_reports(store):
    put(store, FULL)
    put(store, made("rival", profile="full"), "nightly")
    put(store, made("before", profile="full"), "stable")

    class Raced(MemoryStore):
        def swap(self, key, body, expected_etag):
            promote(store, "nightly", "stable", terms(1))
            return super().swap(key, body, expected_etag)

    raced = Raced()
    raced.objects = store.objects
    with pytest.raises(PublishConflict, match="nothing was overwritten"):
        promote(raced, "dev", "stable", terms(1))
    assert moves(store, "stable")[1:] == [made("rival", profile="full")[0].digest]


def test_an_index_under_the_wrong_name_is_refused(store):
    save_definitions(store)
    publish(store, *FULL, "dev", terms())
    key = index_key(FULL[0].digest)
    store.objects[key] = store.objects[key].replace(b'"rounds":8', b'"rounds":9')
    with pytest.raises(StoreRefused, match="damaged or tampered with"):
        promote(store, "dev", "stable", terms(1))


def test_the_signer_of_a_promotion_signs_the_new_pointer(store):
    put(store, FULL)
    moved = promote(store, "dev", "stable", terms(1))
    assert history.signers(store, moved.digest)
    assert SIGNER.public.key_id in "".join(key for key in store.objects if moved.digest[7:] in key)

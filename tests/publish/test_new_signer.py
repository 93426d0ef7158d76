"""A signed channel goes on under its key; another key follows only when somebody says so."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fib_core.errors import ContractError
from fib_core.publication import history, signing
from fib_core.publish import Terms, foresee, promote, rollback
from tests.fakes.memory_store import MemoryStore
from tests.publish.material import OTHER, SIGNER, made, moves, put, terms, whole

MOVES: dict[str, Callable[[MemoryStore, Terms], object]] = {
    "publish": lambda store, under: put(store, made("3"), under=under),
    "promote": lambda store, under: promote(store, "nightly", "dev", under, vouch=True),
    "rollback": lambda store, under: rollback(store, "dev", None, under, vouch=True),
    "foresee": lambda store, under: foresee(store, "quick", "dev", under),
}


@pytest.fixture
def store() -> MemoryStore:
    """Two moves signed by SIGNER, and an unsigned channel."""
    found = MemoryStore()
    for hour, note in enumerate("12"):
        put(found, made(note), under=terms(hour))
    put(found, made("3"), "nightly", terms(signer=None))
    return found


@pytest.mark.parametrize("move", MOVES)
def test_another_key_does_not_continue_a_signed_channel_without_a_word(store: MemoryStore, move: str) -> None:
    before = dict(store.objects)
    with pytest.raises(ContractError, match=r"dev is signed by .* not by the key here.*--new-signer") as refused:
        MOVES[move](store, terms(3, OTHER))
    assert SIGNER.public.key_id in str(refused.value)
    assert OTHER.public.key_id in str(refused.value)
    assert "keep the one they have" in str(refused.value)
    assert store.objects == before


@pytest.mark.parametrize("move", MOVES)
def test_the_same_key_and_a_new_one_that_was_announced_go_on(store: MemoryStore, move: str) -> None:
    MOVES[move](store, terms(3))
    MOVES[move](store, replace(terms(4, OTHER), new_signer=True))


def test_a_new_signer_is_announced_once(store: MemoryStore) -> None:
    put(store, made("3"), under=replace(terms(3, OTHER), new_signer=True))
    put(store, made("4"), under=terms(4, OTHER))
    assert whole(store, "dev", OTHER).number == 4
    with pytest.raises(ContractError, match="--new-signer"):
        put(store, made("5"), under=terms(5))


def test_a_key_beside_the_old_one_among_the_trusted_goes_on_without_a_word(store: MemoryStore) -> None:
    both = replace(terms(3, OTHER), trusted=(OTHER.public, SIGNER.public))
    assert put(store, made("3"), under=both).number == 3
    with pytest.raises(ContractError, match="--new-signer"):
        put(store, made("4"), under=replace(terms(4), trusted=(SIGNER.public,)))


def test_an_unsigned_channel_takes_any_key_and_no_key(store: MemoryStore) -> None:
    put(store, made("4"), "nightly", terms(4, signer=None))
    put(store, made("5"), "nightly", terms(5, OTHER))
    assert len(moves(store, "nightly")) == 3


def test_a_signature_under_our_name_that_is_not_ours_does_not_count(store: MemoryStore) -> None:
    now = history.current(store, "dev")
    theirs = store.objects[signing.signature_key(now.digest, SIGNER.public.key_id)]
    store.objects[signing.signature_key(now.digest, OTHER.public.key_id)] = theirs
    with pytest.raises(ContractError, match="--new-signer"):
        put(store, made("3"), under=terms(3, OTHER))

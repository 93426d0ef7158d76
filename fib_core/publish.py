"""Room 7, publish: write-once objects first, then the proof, then the channel pointer by compare-and-swap.

In: a store (port), a DispatchIndex and its solutions. Out: the pointer that readers now see. Somebody else's move is
never overwritten and two indexes are never merged: a conflict is reported, and the run that is started again decides
anew from the evaluations that are stored. Publishing what is already current changes nothing. Promotion and rollback
move a pointer under the same terms.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from fib_core.errors import ContractError, ObjectMissing, RolledBack, StoreRefused
from fib_core.index.lookup import check
from fib_core.ports import ObjectStore
from fib_core.publication import condemned, damage, history, signing
from fib_core.publication.history import Seen
from fib_core.publication.rolled_back import left_by
from fib_core.publication.terms import Terms, check_signature, check_signer, getter, stands, vouch_for
from schemas.base import Digest
from schemas.canonical import canonical_bytes, digest_of_bytes
from schemas.decision import Profile
from schemas.index import DispatchIndex
from schemas.publication import ChannelPointer
from schemas.solution import Solution

__all__ = ["STABLE", "Terms", "foresee", "index_key", "objects_of", "promote", "publish", "read_index", "rollback"]

STABLE = "stable"


def publish(
    store: ObjectStore, index: DispatchIndex, solutions: Mapping[Digest, Solution], channel: str, terms: Terms
) -> ChannelPointer:
    """Make ``index`` current in ``channel``.

    Raises ContractError (quick profile into ``stable``, a missing solution, an index that fails its publish test or
    whose proof fails, a signature that is missing), PublishConflict (the channel moved meanwhile) and RolledBack (a
    rollback of this channel left that very index; nothing was written).
    """
    _admit(index.profile, channel)
    check(index)
    seen = history.look(store, channel)
    if seen.pointer is not None and stands(store, seen.pointer, index.digest, terms):
        return seen.pointer
    check_signer(store, seen, terms)
    _check_not_left(store, seen, index.digest)
    _put_objects(store, index, solutions)
    vouch_for(store, index.digest, terms)
    return _move(store, seen, index, "publish", terms)


def foresee(store: ObjectStore, profile: Profile, channel: str, terms: Terms) -> None:
    """What would refuse any index of this profile, asked before hours are spent on making one.

    Raises ContractError (a channel's name, the profile, keys) and StoreRefused (the channel cannot be read).
    """
    _admit(profile, channel)
    check_signer(store, history.look(store, channel), terms)


def promote(store: ObjectStore, source: str, target: str, terms: Terms, vouch: bool = False) -> ChannelPointer:
    """Make the index that ``source`` names current in ``target`` too; doing it again changes nothing.

    ``vouch`` signs the index with our key; without it the index must carry a signature that :attr:`Terms.accepted`
    knows. Raises as :func:`publish`, ``ObjectMissing`` (no such channel, an object is gone), ``StoreRefused`` (damage).
    """
    found = history.current(store, source)
    if not vouch:
        check_signature(store, signing.POINTER, found.digest, terms)
    return _repoint(store, history.look(store, target), history.Move(found.index_digest, "promote"), terms, vouch)


def rollback(store: ObjectStore, channel: str, to: Digest | None, terms: Terms, vouch: bool = False) -> ChannelPointer:
    """Point ``channel`` at an index that it named before (None: the one before the current; twice is back again).

    Raises as :func:`promote`; ``ObjectMissing`` too for an index that the channel never named.
    """
    seen = history.look(store, channel)
    now = seen.pointer or history.current(store, channel)
    named = _named(store, now)
    target = to or next((item for item in named if item != now.index_digest), None)
    if target is None:
        raise ContractError(f"channel {channel} had no index before {now.index_digest}; nothing to go back to")
    if target not in named:
        raise ObjectMissing(f"channel {channel} never named {target}; `fib history {channel}` lists what it named")
    return _repoint(store, seen, history.Move(target, "rollback"), terms, vouch)


def index_key(digest: Digest) -> str:
    """Where an index lies."""
    return f"indexes/{digest.removeprefix('sha256:')}.json"


def read_index(store: ObjectStore, digest: Digest) -> DispatchIndex:
    """An index, verified; raises ``ObjectMissing`` or ``StoreRefused``."""
    key = index_key(digest)
    body = store.get(key).body
    if digest_of_bytes(body) != digest:
        raise StoreRefused(f"{key} in {store.url} has the digest {digest_of_bytes(body)}: damaged or tampered with")
    try:
        return DispatchIndex.model_validate_json(body)
    except ValueError as error:
        raise StoreRefused(f"{key} in {store.url} is no dispatch index: {damage.in_words(error)}") from error


def _repoint(store: ObjectStore, seen: Seen, wanted: history.Move, terms: Terms, vouch: bool) -> ChannelPointer:
    """Move to an index that is in the store already."""
    index = read_index(store, wanted.index_digest)
    _admit(index.profile, seen.channel)
    if seen.pointer is not None and stands(store, seen.pointer, index.digest, terms):
        return seen.pointer
    check_signer(store, seen, terms)
    if vouch:
        vouch_for(store, index.digest, terms)
    else:
        check_signature(store, signing.INDEX, index.digest, terms)
    return _move(store, seen, index, wanted.action, terms)


def _move(
    store: ObjectStore, seen: Seen, index: DispatchIndex, action: history.Action, terms: Terms
) -> ChannelPointer:
    """All objects are there. They are taken back before the proof: what was deleted until then, the proof misses."""
    condemned.take_back(store, objects_of(index), signing.signature_key(index.digest, "").removesuffix(".json"))
    terms.prove(getter(store), index.digest)
    return history.move(store, seen, history.Move(index.digest, action), terms.now, terms.signer)


def objects_of(index: DispatchIndex) -> frozenset[str]:
    """Keys that a publisher writes for an index and a collection may delete: it and its solutions."""
    return frozenset({index_key(index.digest), *(item.object_key for item in index.solutions)})


def _admit(profile: Profile, channel: str) -> None:
    history.channel_key(channel)
    if channel == STABLE and profile != "full":
        raise ContractError(f"the channel {STABLE} takes no index of the profile {profile}; run the profile full")


def _check_not_left(store: ObjectStore, seen: Seen, digest: Digest) -> None:
    """A run that makes again what somebody went back from must not undo that."""
    if seen.pointer is None or seen.pointer.index_digest == digest:
        return
    move = left_by(_readable(store, seen.pointer), digest)
    if move is not None:
        raise RolledBack(
            f"{digest} was rolled back from {seen.channel} at {move.published_at}; nothing new was decided. `fib run "
            f"--campaign N` with a new N measures afresh; `fib rollback --channel {seen.channel} --to {digest}` goes "
            "forward again by hand"
        )


def _readable(store: ObjectStore, newest: ChannelPointer) -> Iterator[ChannelPointer]:
    """The history up to where it is broken: what was before that is not known, and bars nothing."""
    with suppress(StoreRefused):
        yield from history.chain(store, newest)


def _put_objects(store: ObjectStore, index: DispatchIndex, solutions: Mapping[Digest, Solution]) -> None:
    """Solutions before the index, so that whoever sees the index finds all that it names."""
    definition_of = {
        entry.solution_digest: block.definition_digest for block in index.definitions for entry in block.entries
    }
    for item in index.solutions:
        solution = solutions.get(item.solution_digest)
        if solution is None:
            raise ContractError(f"the solution {item.name} is named by the index but was not handed over")
        body = {"definition_digest": definition_of[item.solution_digest], "solution": solution.public_json()}
        store.put_once(item.object_key, canonical_bytes(body))
    store.put_once(index_key(index.digest), canonical_bytes(index.model_dump(mode="json")))


def _named(store: ObjectStore, newest: ChannelPointer) -> list[Digest]:
    """Every index that the channel named, newest first; a pointer without a chain knows only the one before it."""
    pairs = ((pointer.index_digest, pointer.previous) for pointer in history.chain(store, newest))
    return list(dict.fromkeys(item for pair in pairs for item in pair if item))

"""What a channel named, now and before. In: a store (port), a channel. Out: pointers, newest first; a pointer moved.

A pointer names the one before it, which was written once under its own digest before it was replaced. So the history
is exactly the chain behind the current pointer: it moves in the same compare-and-swap, a killed or beaten publisher
cannot leave a hole or a false line in it, and one signature of the newest pointer covers all of it. Knows nothing of
what an index holds.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from fib_core.errors import ContractError, DeviceError, ObjectMissing, PublishConflict, StoreRefused
from fib_core.ports import ObjectStore
from fib_core.publication import damage, signing
from schemas.base import Digest
from schemas.canonical import canonical_bytes
from schemas.publication import ChannelPointer, Signature

CHANNELS, POINTERS = "channels", "pointers"
Action = Literal["publish", "promote", "rollback"]


class Seen(NamedTuple):
    """A channel as it was read: a move is made from exactly this state or not at all."""

    channel: str
    pointer: ChannelPointer | None
    etag: str | None


class Move(NamedTuple):
    """Where a channel is to point, and by what."""

    index_digest: Digest
    action: Action


def channel_key(channel: str) -> str:
    """Where a channel's pointer lies; raises ContractError for a name that is not one plain path segment."""
    if not channel or channel.startswith(".") or not all(c.isalnum() or c in "_.-" for c in channel):
        raise ContractError(f"channel name {channel!r} is not plain; use letters, digits and _.- without a leading dot")
    return f"{CHANNELS}/{channel}.json"


def pointer_key(digest: Digest) -> str:
    """Where a pointer that was replaced lies for good."""
    return f"{POINTERS}/{digest.removeprefix('sha256:')}.json"


def channels(store: ObjectStore) -> list[str]:
    """The names of all channels."""
    return [key.removeprefix(f"{CHANNELS}/").removesuffix(".json") for key in store.keys(f"{CHANNELS}/")]


def look(store: ObjectStore, channel: str) -> Seen:
    """The channel now; its pointer and tag are None if it does not exist yet.

    Raises ``StoreRefused`` for a pointer that cannot be read; it says which archived one could be put back.
    """
    key = channel_key(channel)
    try:
        found = store.get(key)
    except ObjectMissing:
        return Seen(channel, None, None)
    try:
        return Seen(channel, _parsed(store, key, found.body), found.etag)
    except StoreRefused as error:
        raise StoreRefused(f"{error}; {damage.how_to_restore(store, channel, key, POINTERS)}") from error


def current(store: ObjectStore, channel: str) -> ChannelPointer:
    """What an existing channel names; raises ``ObjectMissing``."""
    pointer = look(store, channel).pointer
    if pointer is None:
        raise ObjectMissing(f"{store.url} has no channel {channel!r}; publish one with `fib run`")
    return pointer


def chain(store: ObjectStore, newest: ChannelPointer) -> Iterator[ChannelPointer]:
    """``newest`` and all before it, each verified; raises ``StoreRefused`` where the chain is broken."""
    pointer = newest
    yield pointer
    while pointer.previous_pointer is not None:
        before = _archived(store, pointer.previous_pointer)
        if (before.index_digest, before.number) != (pointer.previous, pointer.number - 1) or (
            before.channel not in (pointer.channel, "")
        ):
            raise StoreRefused(f"{pointer_key(pointer.digest)} in {store.url} does not follow from the one it names")
        pointer = before
        yield pointer


def move(
    store: ObjectStore, seen: Seen, wanted: Move, now: str, signer: signing.Signer | None = None
) -> ChannelPointer:
    """Point the channel at ``wanted`` by compare-and-swap at ``now`` (ISO 8601); what it replaces is on record first.

    Raises PublishConflict if the channel is not as it was seen. An answer that was lost does not matter: if our own
    pointer is, or was meanwhile, what the channel names, the move was made.
    """
    pointer = _following(seen, wanted, now)
    body = _body(pointer)
    if seen.pointer is not None:
        store.put_once(pointer_key(seen.pointer.digest), _body(seen.pointer))
    if signer is not None:
        put_signature(store, signer.sign(signing.POINTER, pointer.digest))
    try:
        store.swap(channel_key(seen.channel), body, seen.etag)
    except (PublishConflict, DeviceError) as error:
        if _was_made(store, seen.channel, pointer):
            return pointer
        if isinstance(error, DeviceError):
            raise
        raise PublishConflict(_moved(store, seen)) from error
    return pointer


def put_signature(store: ObjectStore, signature: Signature) -> None:
    """Write a signature beside what it signs; the same key always writes the same bytes."""
    key = signing.signature_key(signature.signed_digest, signature.key_id)
    store.put_once(key, canonical_bytes(signature.model_dump(mode="json")))


def signers(store: ObjectStore, digest: Digest) -> list[str]:
    """Ids of the keys that signed that object; says nothing about whether their signatures are valid."""
    prefix = f"{signing.PREFIX}/{digest.removeprefix('sha256:')}/"
    return [key.removeprefix(prefix).removesuffix(".json") for key in store.keys(prefix)]


def _following(seen: Seen, wanted: Move, now: str) -> ChannelPointer:
    before = seen.pointer
    return ChannelPointer(
        index_digest=wanted.index_digest,
        previous=before.index_digest if before else None,
        published_at=now,
        channel=seen.channel,
        number=before.number + 1 if before else 1,
        action=wanted.action,
        previous_pointer=before.digest if before else None,
    )


def _was_made(store: ObjectStore, channel: str, ours: ChannelPointer) -> bool:
    """True if ``ours`` is what the channel names, or is in the chain behind it."""
    try:
        now = look(store, channel).pointer
        for pointer in chain(store, now) if now is not None else ():
            if pointer.number <= ours.number:
                return pointer == ours
    except (DeviceError, ObjectMissing, StoreRefused):
        return False
    return False


def _archived(store: ObjectStore, digest: Digest) -> ChannelPointer:
    key = pointer_key(digest)
    try:
        pointer = _parsed(store, key, store.get(key).body)
    except ObjectMissing as error:
        raise StoreRefused(f"the history is broken: {key} is not in {store.url}; restore it from a copy") from error
    if pointer.digest != digest:
        raise StoreRefused(f"{key} in {store.url} has the digest {pointer.digest}: damaged or tampered with")
    return pointer


def _parsed(store: ObjectStore, key: str, body: bytes) -> ChannelPointer:
    try:
        return ChannelPointer.model_validate_json(body)
    except ValueError as error:
        raise StoreRefused(f"{key} in {store.url} is no channel pointer: {damage.in_words(error)}") from error


def _body(pointer: ChannelPointer) -> bytes:
    return canonical_bytes(pointer.model_dump(mode="json"))


def _moved(store: ObjectStore, seen: Seen) -> str:
    now = look(store, seen.channel).pointer
    before = seen.pointer.index_digest if seen.pointer else "no index"
    after = now.index_digest if now else "no index"
    return (
        f"the channel {seen.channel} moved from {before} to {after} while this index was being published; nothing was "
        "overwritten. Look at what the other run published, then run `fib run` again if this index should still win."
    )

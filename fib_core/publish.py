"""Room 7, publish: write-once objects first, then the channel pointer by compare-and-swap.

In: a store (port), a DispatchIndex and its solutions. Out: the pointer that readers now see. Somebody else's move is
never overwritten; publishing what is already current changes nothing.
"""

from collections.abc import Mapping

from fib_core.errors import ContractError, ObjectMissing, PublishConflict
from fib_core.lookup import check
from fib_core.ports import ObjectStore, StoredObject
from schemas.base import Digest
from schemas.canonical import canonical_bytes
from schemas.index import ChannelPointer, DispatchIndex
from schemas.solution import Solution

STABLE = "stable"


def publish(
    store: ObjectStore, index: DispatchIndex, solutions: Mapping[Digest, Solution], channel: str, now: str
) -> ChannelPointer:
    """Make ``index`` current in ``channel``; ``now`` is an ISO 8601 time.

    Raises ContractError (quick profile into ``stable``, a missing solution, an index that fails its publish test) and
    PublishConflict (the channel moved meanwhile: nothing was overwritten).
    """
    if channel == STABLE and index.profile != "full":
        raise ContractError(f"the channel {STABLE} takes no index of the profile {index.profile}; run the profile full")
    check(index)
    current, etag = read_channel(store, channel)
    if current is not None and current.index_digest == index.digest:
        return current
    _put_objects(store, index, solutions)
    pointer = ChannelPointer(
        index_digest=index.digest, previous=current.index_digest if current else None, published_at=now
    )
    try:
        store.swap(channel_key(channel), canonical_bytes(pointer.model_dump(mode="json")), etag)
    except PublishConflict as error:
        raise PublishConflict(_moved(store, channel, current)) from error
    return pointer


def channel_key(channel: str) -> str:
    """Where a channel's pointer lies."""
    return f"channels/{channel}.json"


def index_key(digest: Digest) -> str:
    """Where an index lies."""
    return f"indexes/{digest.removeprefix('sha256:')}.json"


def read_channel(store: ObjectStore, channel: str) -> tuple[ChannelPointer | None, str | None]:
    """The pointer and its version tag; (None, None) for a channel that does not exist yet."""
    try:
        found: StoredObject = store.get(channel_key(channel))
    except ObjectMissing:
        return None, None
    return ChannelPointer.model_validate_json(found.body), found.etag


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


def _moved(store: ObjectStore, channel: str, seen: ChannelPointer | None) -> str:
    now, _ = read_channel(store, channel)
    before = seen.index_digest if seen else "no index"
    after = now.index_digest if now else "no index"
    return (
        f"the channel {channel} moved from {before} to {after} while this index was being published; nothing was "
        "overwritten. Look at what the other run published, then run `fib run` again if this index should still win."
    )

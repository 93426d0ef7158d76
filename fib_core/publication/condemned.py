"""What a collection means to delete. In: a store (port). Out: marks, or a refusal to publish what is being deleted.

Deleting goes in two steps, hours apart: a mark names objects that no channel reaches; once it is ``grace_s`` old a
collection claims it and deletes what is still unreached. A mark changes by compare-and-swap only, so of a publisher
that takes its objects back and a collection that claims them exactly one is first. No clock decides between them.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from fib_core.errors import ObjectMissing, PublishConflict, StoreRefused
from fib_core.ports import ObjectStore
from schemas.canonical import canonical_bytes
from schemas.publication import Condemned

PREFIX = "condemned"
ATTEMPTS = 5
DEAD_AFTER_S = 3600.0


class Mark(NamedTuple):
    """A mark as it was read: it is changed from exactly this state or not at all."""

    key: str
    etag: str
    record: Condemned


def take_back(store: ObjectStore, keys: frozenset[str], prefix: str) -> None:
    """Take ``keys``, and all under ``prefix``, out of every mark, before they are proved to be there and named.

    Raises PublishConflict if a collection has claimed one of them: it may be deleting it right now.
    """
    for _ in range(ATTEMPTS):
        needed = [
            (mark, {key for key in mark.record.keys if key in keys or key.startswith(prefix)}) for mark in marks(store)
        ]
        if all(_without(store, mark, mine) for mark, mine in needed if mine):
            return
    raise PublishConflict(f"marks of a collection in {store.url} keep changing; nothing moved, publish again")


def claim(store: ObjectStore, mark: Mark, now: str) -> bool:
    """Make a mark this collection's own; False if somebody changed it since it was read."""
    return _changed(store, mark, {"claimed_at": now})


def is_due(mark: Mark, now: str) -> bool:
    """True if its objects may be deleted: old enough, and no collection that may still live has claimed it."""
    if mark.record.claimed_at:
        return _passed_s(mark.record.claimed_at, now) >= DEAD_AFTER_S
    return _passed_s(mark.record.marked_at, now) >= mark.record.grace_s


def marks(store: ObjectStore) -> Iterator[Mark]:
    """Every mark; one that ends meanwhile is skipped."""
    for key in list(store.keys(f"{PREFIX}/")):
        try:
            found = store.get(key)
        except ObjectMissing:
            continue
        try:
            yield Mark(key, found.etag, Condemned.model_validate_json(found.body))
        except ValueError as error:
            raise StoreRefused(f"{key} in {store.url} is no mark of a collection: {error}; delete it") from error


def put(store: ObjectStore, keys: Iterable[str], now: str, grace_s: int) -> None:
    """Mark ``keys``."""
    mark = Condemned(marked_at=now, grace_s=grace_s, keys=tuple(sorted(keys)))
    store.put_once(f"{PREFIX}/{mark.digest.removeprefix('sha256:')}.json", _body(mark))


def _without(store: ObjectStore, mark: Mark, keys: set[str]) -> bool:
    """The mark without ``keys``; False if it changed meanwhile."""
    if mark.record.claimed_at:
        raise PublishConflict(
            f"a collection in {store.url} is deleting objects that this index needs and nobody named ({mark.key}); "
            "nothing moved. Let `fib gc --delete` finish, then publish again"
        )
    return _changed(store, mark, {"keys": tuple(key for key in mark.record.keys if key not in keys)})


def _changed(store: ObjectStore, mark: Mark, update: dict[str, object]) -> bool:
    """The mark as it was read, with ``update``; False if it is another one by now."""
    try:
        store.swap(mark.key, _body(mark.record.model_copy(update=update)), mark.etag)
    except PublishConflict:
        return False
    return True


def _passed_s(since: str, now: str) -> float:
    return (datetime.fromisoformat(now) - datetime.fromisoformat(since)) / timedelta(seconds=1)


def _body(mark: Condemned) -> bytes:
    return canonical_bytes(mark.model_dump(mode="json"))

"""Collection: what no channel reaches is marked, and hours later deleted. In: a store (port), a time. Out: counts.

Reached: every pointer of every channel's history; of the indexes, those that a channel names, or named just before
that, or stopped naming less than ``keep_days`` ago; their solutions; the signatures of all these. Only keys under
:data:`COLLECTED` are ever deleted: snapshots, definitions, evaluations and decisions are the record and stay. Killed at
any moment, it is simply started again. Why two steps: see `fib_core.publication.condemned`.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from fib_core.errors import ObjectMissing
from fib_core.ports import ObjectStore
from fib_core.publication import condemned, history, signing
from fib_core.publish import objects_of, read_index
from schemas.base import Digest

COLLECTED = ("indexes/", "solutions/", f"{history.POINTERS}/", f"{signing.PREFIX}/")


class Survey(NamedTuple):
    """All keys under :data:`COLLECTED`, parted."""

    reached: frozenset[str]
    unreached: frozenset[str]


class Collection(NamedTuple):
    """What happened, or would: ``reached`` + deleted + waiting + marked are all keys under :data:`COLLECTED`."""

    reached: int
    deleted: tuple[str, ...]
    waiting: tuple[str, ...]
    marked: tuple[str, ...]


def collect(store: ObjectStore, now: str, keep_days: float, grace_s: int, dry_run: bool = True) -> Collection:
    """Delete what was marked at least its grace ago and is still unreached; mark the rest of what is unreached.

    ``dry_run`` writes and deletes nothing. Raises StoreRefused or ObjectMissing if a channel, a history or an index
    that is to be kept cannot be read: what is reached is not known then, so nothing is deleted.
    """
    standing = list(condemned.marks(store))
    survey(store, now, keep_days)  # or raise before anything is claimed
    due = [mark for mark in standing if condemned.is_due(mark, now) and (dry_run or condemned.claim(store, mark, now))]
    overdue = {name for mark in due for name in mark.record.keys}
    young = {name for mark in standing if mark not in due for name in mark.record.keys}
    # After the claims: what a publisher took back and named before is seen here.
    reached, unreached = survey(store, now, keep_days)
    found = Collection(
        len(reached),
        deleted=tuple(sorted(unreached & overdue)),
        waiting=tuple(sorted(unreached & young - overdue)),
        marked=tuple(sorted(unreached - young - overdue)),
    )
    if not dry_run:
        for key in (*found.deleted, *(mark.key for mark in due)):
            store.delete(key)
        if found.marked:
            condemned.put(store, found.marked, now, grace_s)
    return found


def survey(store: ObjectStore, now: str, keep_days: float) -> Survey:
    """Which collectable keys the channels reach at ``now`` (ISO 8601)."""
    since = datetime.fromisoformat(now) - timedelta(days=keep_days)
    reached: set[str] = set()
    signed: set[str] = set()
    for channel in history.channels(store):
        indexes = list(_kept(store, channel, since))
        pointers = [pointer.digest for pointer in history.chain(store, history.current(store, channel))]
        reached.update(history.pointer_key(digest) for digest in pointers)
        reached.update(key for place, digest in enumerate(indexes) for key in _objects(store, digest, place == 0))
        signed.update(digest.removeprefix("sha256:") for digest in (*indexes, *pointers))
    listed = frozenset(key for prefix in COLLECTED for key in store.keys(prefix))
    hold = frozenset(key for key in listed if key in reached or _signed_hex(key) in signed)
    return Survey(hold, listed - hold)


def _kept(store: ObjectStore, channel: str, since: datetime) -> Iterator[Digest]:
    """The indexes of a channel that must stay, the current one first; so that a rollback always has where to go."""
    named: dict[Digest, None] = {}
    ended: datetime | None = None
    for pointer in history.chain(store, history.current(store, channel)):
        named[pointer.index_digest] = None
        if len(named) <= 2 or ended is None or ended >= since:
            yield pointer.index_digest
        if pointer.previous_pointer is None and pointer.previous is not None:
            yield pointer.previous
        ended = datetime.fromisoformat(pointer.published_at)


def _objects(store: ObjectStore, digest: Digest, current: bool) -> frozenset[str]:
    """What an index needs; one that an earlier collection took, and that nobody names now, needs nothing."""
    try:
        return objects_of(read_index(store, digest))
    except ObjectMissing:
        if current:
            raise
        return frozenset()


def _signed_hex(key: str) -> str | None:
    """Of ``signatures/<hex>/<key id>.json`` the hex of what was signed."""
    return key.split("/")[1] if key.startswith(f"{signing.PREFIX}/") else None

"""Follow a channel: store -> verified objects -> local cache -> :class:`PulledIndex`.

Objects are checked when they are fetched and again when they are read from the cache. Nothing here imports torch or
the pipeline; pydantic and boto3 come in with the first call.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fib_core.errors import ObjectMissing, StoreRefused
from fib_core.runtime import places, trust
from fib_core.runtime.local_cache import LocalCache, channel_key
from fib_core.runtime.pulled import PulledIndex, assemble, object_key, parsed, verify

if TYPE_CHECKING:
    from fib_core.ports import ObjectStore
    from fib_core.publication.signing import Vouched
    from schemas.publication import ChannelPointer


def pull(url: str | None = None, channel: str | None = None, cache_dir: str | Path | None = None) -> PulledIndex:
    """Fetch the index that ``channel`` of the store at ``url`` names, and everything that it refers to.

    Raises ``ObjectMissing`` (no such channel), ``StoreRefused`` (an object is missing, unreadable or not what its
    digest says; the message names it) or ``DeviceError`` (unreachable). After any failure the index that was pulled
    before stays current.
    """
    return pull_from(open_store(url), channel, cache_dir)


def open_store(url: str | None = None) -> "ObjectStore":
    """The store at ``url``, by default this installation's; nothing is contacted yet."""
    from fib_core.adapters import store_url

    return store_url.open_store(url or places.store_url())


def pull_from(
    store: "ObjectStore", channel: str | None = None, cache_dir: str | Path | None = None
) -> PulledIndex:
    """:func:`pull` from an open store."""
    channel = channel or places.channel()
    cache = LocalCache(Path(cache_dir or places.cache_dir()))
    with cache.writing():
        pointer = read_pointer(store, channel)
        vouched = _vouched(store, channel, pointer, _followed(cache, channel, store.url))
        fetcher = _Fetcher(store, cache)
        found = assemble(fetcher.get, pointer.index_digest)
        _keep(cache, channel, store.url, pointer, vouched)
    return replace(
        found,
        channel=channel,
        previous=pointer.previous,
        source=store.url,
        cache_dir=cache.root,
        fetched_count=fetcher.count,
        signed_by=vouched[-1].key_id if vouched else None,
    )


def load(
    cache_dir: str | Path | None = None, channel: str | None = None, index_digest: str | None = None
) -> PulledIndex:
    """Read a pulled index from the local cache, without a network: a pinned one, a channel's, or the last one pulled.

    Raises ``ObjectMissing`` (nothing was pulled) or ``StoreRefused`` (the cache was damaged; the message says where).
    """
    cache = LocalCache(Path(cache_dir or places.cache_dir()))
    where = {"index_digest": index_digest} if index_digest else cache.pointer(channel)
    signed_by = _still_vouched(cache, where)
    found = assemble(cache.get, where["index_digest"])
    return replace(
        found,
        channel=where.get("channel"),
        previous=where.get("previous"),
        source=where.get("source"),
        cache_dir=cache.root,
        signed_by=signed_by,
    )


def read_channel(store: "ObjectStore", channel: str) -> PulledIndex:
    """Read a channel straight from a store and keep nothing: for a person who asks, not for a server."""
    pointer = read_pointer(store, channel)
    vouched = _vouched(store, channel, pointer, None)
    found = assemble(lambda key: store.get(key).body, pointer.index_digest)
    signed_by = vouched[-1].key_id if vouched else None
    return replace(found, channel=channel, previous=pointer.previous, source=store.url, signed_by=signed_by)


def read_pointer(store: "ObjectStore", channel: str) -> "ChannelPointer":
    """What a channel names now; raises ``ObjectMissing`` for a channel that does not exist."""
    return read_tagged_pointer(store, channel)[0]


def read_tagged_pointer(store: "ObjectStore", channel: str) -> "tuple[ChannelPointer, str]":
    """What a channel names now, with the version tag that a swap expects."""
    from schemas.publication import ChannelPointer

    key = channel_key(channel)
    try:
        found = store.get(key)
    except ObjectMissing as error:
        raise ObjectMissing(f"{store.url} has no channel {channel!r}; publish one with `fib run`") from error
    return parsed(ChannelPointer.model_validate_json, found.body, f"{key} in {store.url}"), found.etag


def _vouched(
    store: "ObjectStore", channel: str, pointer: "ChannelPointer", before: trust.Followed | None
) -> "list[Vouched]":
    """The signatures of pointer and index, before anything that they name is read; empty if nothing is checked."""
    found = [
        trust.checked_pointer(lambda key: store.get(key).body, channel, pointer, before),
        trust.checked_index(lambda key: store.get(key).body, pointer.index_digest),
    ]
    return [item for item in found if item is not None]


def _followed(cache: LocalCache, channel: str, source: str) -> trust.Followed | None:
    """Which move of this channel of this store was followed before."""
    try:
        where = cache.pointer(channel)
    except (ObjectMissing, StoreRefused):
        return None
    number = where.get("number", "")
    if where.get("source") != source or "pointer" not in where or not number.isdecimal():
        return None
    return trust.Followed(int(number), where["pointer"])


def _keep(
    cache: LocalCache, channel: str, source: str, pointer: "ChannelPointer", vouched: "list[Vouched]"
) -> None:
    """Everything else is in the cache; now what a later reader checks, and last what names it all."""
    for item in vouched:
        cache.put(item.object_key, item.body)
    cache.put(object_key("pointers", pointer.digest), pointer.model_dump_json().encode())
    where = {"channel": channel, "source": source, "index_digest": pointer.index_digest}
    where |= {"pointer": pointer.digest, "number": str(pointer.number)}
    cache.point(channel, where | ({"previous": pointer.previous} if pointer.previous else {}))


def _still_vouched(cache: LocalCache, where: dict[str, str]) -> str | None:
    """The cache is no safer than the store, so signatures are checked again; who vouched for the index."""
    channel, digest = where.get("channel"), where.get("pointer")
    if channel and digest and trust.is_strict():
        from schemas.publication import ChannelPointer

        key = object_key("pointers", digest)
        pointer = parsed(ChannelPointer.model_validate_json, cache.get(key), f"{key} in {cache.root}")
        if pointer.digest != digest or pointer.index_digest != where["index_digest"]:
            raise StoreRefused(f"{key} in {cache.root} is not what the channel {channel} named; run `fib pull` again")
        trust.checked_pointer(cache.get, channel, pointer, None)
    elif channel and trust.is_strict():
        raise StoreRefused(f"the channel {channel} was pulled before signatures were checked; run `fib pull` again")
    vouched = trust.checked_index(cache.get, where["index_digest"])
    return vouched.key_id if vouched else None


class _Fetcher:
    """Cache first, store second. An object is kept only if its bytes are what its key says."""

    def __init__(self, store: "ObjectStore", cache: LocalCache) -> None:
        self._store, self._cache, self.count = store, cache, 0

    def get(self, key: str) -> bytes:
        """Bytes of ``key``, verified."""
        try:
            body = self._cache.get(key)
            verify(key, body)
        except (ObjectMissing, StoreRefused):
            body = self._fetch(key)
            self._cache.put(key, body)
            self.count += 1
        return body

    def _fetch(self, key: str) -> bytes:
        place = f"{key} in {self._store.url}"
        try:
            body = self._store.get(key).body
            verify(key, body)
        except ObjectMissing as error:
            raise StoreRefused(f"{place} is missing although the index needs it; publish the index again") from error
        except StoreRefused as error:
            raise StoreRefused(f"{place} is refused: {error}; the index pulled before stays in use") from error
        return body

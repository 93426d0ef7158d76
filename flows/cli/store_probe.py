"""Does a store keep its promises? In: an open store. Out: the promises that it broke, in words.

Uses only the port. A key under ``doctor/`` is swapped back and forth and stays behind; no room reads it.
"""

import secrets
from typing import TYPE_CHECKING

from fib_core.errors import ObjectMissing, PublishConflict

if TYPE_CHECKING:
    from fib_core.ports import ObjectStore

KEY = "doctor/probe.json"


def broken_promises(store: "ObjectStore") -> list[str]:
    """Write-once stays written once, a swap with a stale tag fails, a swap with the right one is seen."""
    before = _tag(store)
    body = b'"%s"' % secrets.token_hex(8).encode()
    try:
        now = store.swap(KEY, body, before)
    except PublishConflict:
        # Another doctor was faster: exactly what a store should say.
        return []
    broken = []
    if store.get(KEY).body != body:
        return ["a swap is seen by the next read"]
    if store.put_once(KEY, b'"again"'):
        broken.append("a key that exists is not created again")
    try:
        store.swap(KEY, b'"stale"', before)
        broken.append("a swap with a stale tag is refused")
    except PublishConflict:
        pass
    if not broken and store.get(KEY).etag != now:
        broken.append("a refused write changes nothing")
    return broken


def _tag(store: "ObjectStore") -> str | None:
    try:
        return store.get(KEY).etag
    except ObjectMissing:
        return None

"""Which keys every store accepts. In: a key or a prefix. Out: the same text, or ``ContractError``. Knows no store."""

import re

from fib_core.errors import ContractError

MAX_KEY_BYTES = 512
_SEGMENT = re.compile(r"[A-Za-z0-9_=+@,-][A-Za-z0-9_.=+@,-]*")


def checked_key(key: str) -> str:
    """Return ``key`` if it is relative, plain ASCII and free of empty, dotted or hidden segments.

    The same rule holds for every adapter, so a key that works in a directory works in a bucket. Segments that start
    with a dot are the adapters' own (probes, temporary files).
    """
    if len(key) > MAX_KEY_BYTES:
        raise ContractError(f"store key is longer than {MAX_KEY_BYTES} bytes: {key[:60]!r}...")
    for segment in key.split("/"):
        if not _SEGMENT.fullmatch(segment):
            raise ContractError(
                f"store key {key!r} has the bad segment {segment!r}; use letters, digits and _.=+@,- between single "
                "slashes, no leading dot"
            )
    return key


def checked_prefix(prefix: str) -> str:
    """Return ``prefix`` if some valid key could start with it; the empty prefix means every key."""
    *whole, last = prefix.split("/")
    checked_key("/".join([*whole, last or "x"]))
    return prefix

"""Which keys every store accepts. In: a key or a prefix. Out: the same text, or ``ContractError``. Knows no store."""

import re

from fib_core.errors import ContractError

MAX_KEY_BYTES = 512
_SEGMENT = re.compile(r"[A-Za-z0-9_=+@,-][A-Za-z0-9_.=+@,-]*")


def is_key(text: str) -> bool:
    """True for relative plain-ASCII keys without empty, dotted or hidden segments.

    The same rule holds for every adapter, so a key that works in a directory works in a bucket. Segments that start
    with a dot are the adapters' own (probes, temporary files, locks) and never listed.
    """
    return len(text) <= MAX_KEY_BYTES and all(_SEGMENT.fullmatch(segment) for segment in text.split("/"))


def checked_key(key: str) -> str:
    """Return ``key`` if :func:`is_key`, else raise ``ContractError``."""
    if not is_key(key):
        raise ContractError(
            f"bad store key {key[:80]!r}; use at most {MAX_KEY_BYTES} letters, digits and _.=+@,- between single "
            "slashes, no segment starting with a dot"
        )
    return key


def checked_prefix(prefix: str) -> str:
    """Return ``prefix`` if some valid key could start with it; the empty prefix means every key."""
    if not is_key(prefix) and not is_key(prefix + "x"):
        checked_key(prefix)
    return prefix

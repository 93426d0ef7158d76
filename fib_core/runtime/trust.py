"""Whose word a consumer takes. In: objects by key, what the environment trusts. Out: who vouched, or a refusal.

``FIB_TRUSTED_KEYS`` names the keys; if it is not set nothing is checked here, and a pull says so once. With keys, an
index must be signed by one of them, and so must the pointer that a channel is followed by: else an old index, which is
signed as well, could be put back. A pointer may not be older than one that was followed before, nor than
``FIB_PUBLISHED_AFTER`` (ISO 8601). `cryptography` comes in only where keys are configured.
"""

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from fib_core.errors import ContractError, StoreRefused
from fib_core.runtime.notices import once

if TYPE_CHECKING:
    from fib_core.publication.signing import PublicKey, Vouched
    from fib_core.runtime.pulled import Getter
    from schemas.publication import ChannelPointer

TRUSTED_KEYS, PUBLISHED_AFTER = "FIB_TRUSTED_KEYS", "FIB_PUBLISHED_AFTER"
NOT_CHECKED = f"signatures are not checked: {TRUSTED_KEYS} names no public key; whoever can write the store is trusted"


class Followed(NamedTuple):
    """Which move of a channel a reader followed before."""

    number: int
    digest: str


def trusted_keys() -> "tuple[PublicKey, ...]":
    """The configured public keys; raises ContractError for a setting that cannot be read, never takes it for none."""
    if not os.environ.get(TRUSTED_KEYS, "").strip():
        return ()
    from fib_core.adapters import key_files

    return key_files.trusted_keys()


def is_strict() -> bool:
    """True if something was configured that a reader must check."""
    return any(os.environ.get(name, "").strip() for name in (TRUSTED_KEYS, PUBLISHED_AFTER))


def checked_index(get: "Getter", index_digest: str) -> "Vouched | None":
    """Who vouched for an index (None: nothing is checked); raises ``StoreRefused`` if nobody who is trusted did."""
    from fib_core.publication import signing

    return _checked(get, signing.INDEX, index_digest, f"the index {index_digest}")


def checked_pointer(
    get: "Getter", channel: str, pointer: "ChannelPointer", before: Followed | None
) -> "Vouched | None":
    """Who vouched for what a channel names; raises ``StoreRefused`` for a pointer of another time or channel too."""
    from fib_core.publication import signing

    _check_age(channel, pointer.published_at)
    vouched = _checked(get, signing.POINTER, pointer.digest, f"the pointer of channel {channel}")
    if vouched is None:
        once(NOT_CHECKED)
        return None
    if pointer.channel != channel:
        raise StoreRefused(f"the pointer of channel {channel} was signed for the channel {pointer.channel!r}: refused")
    if before is not None and before != (pointer.number, pointer.digest) and pointer.number <= before.number:
        # Numbers only rise: a lower one is an old pointer put back, an equal one is a second history.
        raise StoreRefused(
            f"the channel {channel} went from move {before.number} back to move {pointer.number}: an old pointer was "
            "put back, so it is refused. If its store was restored from a copy on purpose, remove the local cache"
        )
    return vouched


def _checked(get: "Getter", domain: str, digest: str, what: str) -> "Vouched | None":
    from fib_core.publication import signing

    keys = trusted_keys()
    vouched = signing.valid_signature(get, domain, digest, keys)
    if keys and vouched is None:
        names = ", ".join(key.key_id for key in keys)
        raise StoreRefused(f"{what} is refused: it has no valid signature by a key of {TRUSTED_KEYS} ({names})")
    return vouched


def _check_age(channel: str, published_at: str) -> None:
    wanted = os.environ.get(PUBLISHED_AFTER, "").strip()
    if wanted and _time(published_at, "published_at") < _time(wanted, PUBLISHED_AFTER):
        raise StoreRefused(
            f"the channel {channel} is refused: it was published at {published_at}, before {PUBLISHED_AFTER}={wanted}"
        )


def _time(text: str, place: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ContractError(f"{place}={text!r} is no ISO 8601 time, as in 2026-01-31T00:00:00+00:00") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)

"""Who may move a channel, and how: the real reader's proof, the keys of this process, the store at an address.

In: what a person or a run asks for. Out: the pointer that was moved. For `fib run`, and for the commands that publish
without measuring; so it imports neither Prefect nor a device.
"""

from datetime import UTC, datetime

from fib_core import publish
from fib_core.adapters import key_files
from fib_core.adapters.store_url import open_store
from fib_core.publication import garbage
from fib_core.runtime import places
from schemas.publication import ChannelPointer


def now() -> str:
    """The time of a publication."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def terms(new_signer: bool = False) -> publish.Terms:
    """What holds for every move that this process makes; raises ContractError for keys that cannot be read.

    ``new_signer``: somebody said that our key may follow another's on a channel.
    """
    from fib_core.runtime.proof import prove

    return publish.Terms(prove, now(), key_files.signer(), key_files.trusted_keys(), new_signer)


def promote(store_url: str | None, source: str, target: str, vouch: bool, new_signer: bool) -> ChannelPointer:
    """Point ``target`` at the index that ``source`` names; raises as the room does."""
    return publish.promote(open_store(store_url or places.store_url()), source, target, terms(new_signer), vouch)


def rollback(store_url: str | None, channel: str, to: str | None, vouch: bool, new_signer: bool) -> ChannelPointer:
    """Point ``channel`` at an index that it named before; raises as the room does."""
    return publish.rollback(open_store(store_url or places.store_url()), channel, to, terms(new_signer), vouch)


def collect(store_url: str | None, keep_days: float, grace_s: int, dry_run: bool) -> garbage.Collection:
    """Mark and delete what no channel reaches; raises as `fib_core.publication.garbage` does."""
    return garbage.collect(open_store(store_url or places.store_url()), now(), keep_days, grace_s, dry_run)

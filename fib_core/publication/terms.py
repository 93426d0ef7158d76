"""What holds for every move of a channel: the proof, the keys of whoever publishes, the keys that its consumers trust.

In: a store (port), a channel as it was seen, terms. Out: a refusal, or nothing. Nothing is published that our own
consumers would refuse, and no key takes over a channel from another without a word. Knows nothing of what an index
holds.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fib_core.errors import ContractError
from fib_core.ports import ObjectStore
from fib_core.publication import history, signing
from fib_core.publication.history import Seen
from schemas.base import Digest
from schemas.publication import ChannelPointer

Prove = Callable[[signing.Getter, Digest], None]


@dataclass(frozen=True)
class Terms:
    """What holds for every move: ``prove`` reads the candidate index back as a consumer would, or raises.

    ``now`` is ISO 8601 with an offset. ``signer`` signs what is published; ``trusted`` are the keys that consumers of
    this house accept, and nothing that they would refuse is published. ``new_signer`` lets our key follow another's.
    """

    prove: Prove
    now: str
    signer: signing.Signer | None = None
    trusted: tuple[signing.PublicKey, ...] = ()
    new_signer: bool = False

    @property
    def accepted(self) -> tuple[signing.PublicKey, ...]:
        """Whose signature an index must carry to be moved to: the trusted keys, else our own, else nobody's."""
        return self.trusted or ((self.signer.public,) if self.signer else ())


def getter(store: ObjectStore) -> signing.Getter:
    """Bytes by key."""
    return lambda key: store.get(key).body


def stands(store: ObjectStore, pointer: ChannelPointer, digest: Digest, terms: Terms) -> bool:
    """True if the channel names the index already and, where we sign, by a pointer that our consumers accept."""
    if pointer.index_digest != digest:
        return False
    both = ((signing.POINTER, pointer.digest), (signing.INDEX, digest))
    return not terms.accepted or all(_is_accepted(store, domain, one, terms) for domain, one in both)


def check_signer(store: ObjectStore, seen: Seen, terms: Terms) -> None:
    """Before anything is written: our consumers must be able to accept it, and know of a key that is new."""
    signer = terms.signer
    if terms.trusted and (signer is None or signer.public not in terms.trusted):
        who = f"the signing key {signer.public.key_id} is not one of them" if signer else "no key signs"
        raise ContractError(f"only what the trusted keys signed is followed here, but {who}; nothing was published")
    if seen.pointer is None or not (before := history.signers(store, seen.pointer.digest)):
        return
    if signer is None:
        raise ContractError(
            f"the channel {seen.channel} is signed and no signing key is set: its consumers would refuse the next "
            "index. Set FIB_SIGNING_KEY_FILE, or use another channel; nothing was published"
        )
    if not terms.new_signer and not _is_accepted(store, signing.POINTER, seen.pointer.digest, terms):
        raise ContractError(
            f"the channel {seen.channel} is signed by {', '.join(before)}, not by the key here, "
            f"{signer.public.key_id}. Consumers that do not trust this key would refuse the next index (no valid "
            "signature by a key of FIB_TRUSTED_KEYS) and keep the one they have. Give them its public half first (fib "
            "keys show; several keys may be trusted), then add --new-signer; nothing was published"
        )


def check_signature(store: ObjectStore, domain: str, digest: Digest, terms: Terms) -> None:
    """What somebody else made is moved to only if a key that counts here vouched for it."""
    if terms.accepted and not _is_accepted(store, domain, digest, terms):
        raise ContractError(
            f"{digest} ({domain}) carries no signature by a key that counts here; look at it, then vouch for it with "
            "--sign; nothing was moved"
        )


def vouch_for(store: ObjectStore, digest: Digest, terms: Terms) -> None:
    """Sign an index with our key, if there is one."""
    if terms.signer is not None:
        history.put_signature(store, terms.signer.sign(signing.INDEX, digest))


def _is_accepted(store: ObjectStore, domain: str, digest: Digest, terms: Terms) -> bool:
    return signing.valid_signature(getter(store), domain, digest, terms.accepted) is not None

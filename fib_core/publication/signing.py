"""Ed25519 signatures over digests. In: keys as text, objects as digests. Out: Signature records, or who vouched.

Pure: reads no file and no environment, knows no store. What is signed is (domain, digest), so a signature of an index
says nothing about a pointer. Ed25519 (RFC 8032) is deterministic: signing again writes the same bytes.

A private key must never be seen: its text is parsed here and not kept, no error quotes it, and a :class:`Signer` shows
its public half and refuses to be pickled. `cryptography` is imported by the first use, not with this module.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from fib_core.errors import ContractError, ObjectMissing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from schemas.publication import Signature

INDEX = "fib dispatch index, version 1"
POINTER = "fib channel pointer, version 1"
PREFIX = "signatures"
MARK = "ed25519:"
KEY_BYTES = 32
NO_PRIVATE_KEY = "holds no Ed25519 private key: expected PEM (PKCS 8, not encrypted) or base64 of its 32 bytes"

Getter = Callable[[str], bytes]


class PublicKey(NamedTuple):
    """The half that everybody may see; as text ``ed25519:<base64 of 32 bytes>``."""

    raw: bytes

    @property
    def key_id(self) -> str:
        """First 32 hex digits of the key's SHA-256: a name, never a proof."""
        return hashlib.sha256(self.raw).hexdigest()[:32]

    def __str__(self) -> str:
        return MARK + base64.b64encode(self.raw).decode()


class Signer:
    """Signs; shows only its public half."""

    __slots__ = ("_private", "public")

    def __init__(self, private: "Ed25519PrivateKey") -> None:
        self._private = private
        self.public = PublicKey(private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"Signer({self.public.key_id})"

    def __reduce__(self) -> Any:
        raise TypeError("a signing key leaves its process in no form")

    def sign(self, domain: str, digest: str) -> "Signature":
        """Vouch for the object of that digest."""
        from schemas.publication import Signature

        signature = base64.b64encode(self._private.sign(message(domain, digest))).decode()
        return Signature(domain=domain, signed_digest=digest, key_id=self.public.key_id, signature=signature)


class Vouched(NamedTuple):
    """A valid signature: whose, and where it lies."""

    key_id: str
    object_key: str
    body: bytes


def message(domain: str, digest: str) -> bytes:
    """The bytes that are signed."""
    from schemas.canonical import canonical_bytes

    return canonical_bytes({"digest": digest, "domain": domain})


def signature_key(digest: str, key_id: str) -> str:
    """Where the signature of that key over that object lies."""
    return f"{PREFIX}/{digest.removeprefix('sha256:')}/{key_id}.json"


def valid_signature(get: Getter, domain: str, digest: str, keys: Iterable[PublicKey]) -> Vouched | None:
    """The first valid signature by one of ``keys``. One that cannot be read, or is not valid, counts as absent."""
    for key in keys:
        where = signature_key(digest, key.key_id)
        try:
            body = get(where)
        except ObjectMissing:
            continue
        if _is_valid(body, message(domain, digest), key):
            return Vouched(key.key_id, where, body)
    return None


def new_private_key() -> tuple[bytes, PublicKey]:
    """A fresh key: PEM for the owner's eyes alone, and its public half."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return pem, Signer(private).public


def signer_from(text: str, place: str) -> Signer:
    """Parse a private key; raises ContractError naming ``place`` and nothing of the key."""
    private = _from_pem(text) if text.lstrip().startswith("-----BEGIN") else _from_base64(text)
    if private is None:
        raise ContractError(f"{place} {NO_PRIVATE_KEY}")
    return Signer(private)


def public_key_from(text: str, place: str) -> PublicKey:
    """Parse ``ed25519:<base64>``; raises ContractError."""
    raw = _decoded(text.strip().removeprefix(MARK))
    if not text.strip().startswith(MARK) or raw is None:
        raise ContractError(f"{place}: {text.strip()[:80]!r} is no public key; expected {MARK}<base64 of 32 bytes>")
    return PublicKey(raw)


def _is_valid(body: bytes, signed: bytes, key: PublicKey) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from schemas.publication import Signature

    try:
        signature = base64.b64decode(Signature.model_validate_json(body).signature, validate=True)
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, signed)
    except (ValueError, InvalidSignature):
        return False
    return True


def _from_pem(text: str) -> "Ed25519PrivateKey | None":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return private if isinstance(private, Ed25519PrivateKey) else None


def _from_base64(text: str) -> "Ed25519PrivateKey | None":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    raw = _decoded(text.strip())
    return Ed25519PrivateKey.from_private_bytes(raw) if raw is not None else None


def _decoded(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == KEY_BYTES else None

"""What publication keeps beside its objects: what a channel names, who vouches for it, what a collection removes."""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Digest, Natural, NonEmpty, Record, absent, unset

KeyId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class ChannelPointer(Record):
    """The one mutable object ``channels/<name>.json``: which index is current, and which was before it.

    A pointer that was replaced lies, write-once, under ``pointers/<hex of its digest>.json``; ``previous_pointer``
    names it, so that the history is a chain. ``number`` counts moves of the channel from 1; 0 and an empty ``channel``
    are pointers written before histories were kept.
    """

    schema_version: Literal["1"] = "1"
    index_digest: Digest
    previous: Digest | None
    published_at: NonEmpty
    channel: str = Field(default="", exclude_if=absent)
    number: Natural = Field(default=0, exclude_if=absent)
    action: Literal["", "publish", "promote", "rollback"] = Field(default="", exclude_if=absent)
    previous_pointer: Digest | None = Field(default=None, exclude_if=unset)


class Signature(Record):
    """Ed25519 over the canonical bytes of ``domain`` and digest: ``signatures/<hex of the digest>/<key id>.json``.

    ``signature`` is base64. The domain says what the digest names, so that a signature of one kind of object is worth
    nothing for another.
    """

    schema_version: Literal["1"] = "1"
    domain: NonEmpty
    signed_digest: Digest
    key_id: KeyId
    signature: NonEmpty


class Condemned(Record):
    """Objects that no channel reached at ``marked_at`` (ISO 8601): deleted ``grace_s`` later if that is still so.

    ``claimed_at`` is when a collection began to delete them; empty until then.
    """

    schema_version: Literal["1"] = "1"
    marked_at: NonEmpty
    grace_s: Natural
    keys: tuple[NonEmpty, ...]
    claimed_at: str = ""

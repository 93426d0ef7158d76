"""The two kinds of record: ours (closed) and the public format's (unknown keys survive a round trip)."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from schemas.canonical import DIGEST_PATTERN, digest_of

Digest = Annotated[str, Field(pattern=DIGEST_PATTERN)]
NonEmpty = Annotated[str, Field(min_length=1)]
Natural = Annotated[int, Field(ge=0)]


def absent(value: object) -> bool:
    """For ``exclude_if`` of fields added after version 1: where they say nothing, old records keep their digests."""
    return not value


def unset(value: object) -> bool:
    """As :func:`absent`, where an empty value says something and only None says nothing."""
    return value is None


def first(value: object) -> bool:
    """As :func:`absent`, for the number of a version that was not written down while there was only one."""
    return value == 1


class Record(BaseModel):
    """A frozen value of our own; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    def identity(self) -> Any:
        """What the digest covers: by default every field."""
        return self.model_dump(mode="json")

    @cached_property
    def digest(self) -> str:
        """``sha256:`` name of :meth:`identity`; computed once, since a record never changes."""
        return digest_of(self.identity())

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A changed copy is another record: it must not inherit the digest."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("digest", None)
        return copied


class PublicRecord(Record):
    """A record of the flashinfer-trace format; keys that we do not know are kept as they came."""

    model_config = ConfigDict(frozen=True, extra="allow", ser_json_inf_nan="strings")

    def public_json(self) -> dict[str, Any]:
        """Exactly the keys that were given, unknown ones included."""
        return self.model_dump(mode="json", exclude_unset=True)

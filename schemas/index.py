"""DispatchIndex: a decision with its evidence, what servers pull and follow."""

from typing import Literal

from schemas.base import Digest, Natural, NonEmpty, Record
from schemas.decision import KeyBox, Profile


class IndexEntry(Record):
    """Guarded key -> solution, or the incumbent (``solution_digest`` None: call the caller's own function) and why."""

    key: NonEmpty
    box: KeyBox
    solution_digest: Digest | None
    ratio: float | None
    standard_error: float | None
    interval: tuple[float, float] | None
    rounds: Natural
    finalist_count: Natural
    reason: NonEmpty
    decision_digest: Digest


class IndexedDefinition(Record):
    """All entries of one definition; the default is always the incumbent."""

    name: NonEmpty
    op_type: NonEmpty
    definition_digest: Digest
    incumbent_digest: Digest | None
    incumbent_name: str | None
    default: Literal["incumbent"] = "incumbent"
    default_reason: NonEmpty
    entries: tuple[IndexEntry, ...]


class IndexedSolution(Record):
    """Where a chosen solution lies in the store: ``solutions/<hex>.json``, verified by digest on pull."""

    name: NonEmpty
    author: NonEmpty
    solution_digest: Digest
    object_key: NonEmpty


class DispatchIndex(Record):
    """What a channel points at. ``profile`` quick is refused by the channel ``stable``."""

    schema_version: Literal["1"] = "1"
    snapshot_digest: Digest
    profile: Profile
    device_class: NonEmpty
    library_versions: dict[str, str]
    definitions: tuple[IndexedDefinition, ...]
    solutions: tuple[IndexedSolution, ...]


class ChannelPointer(Record):
    """The one mutable object ``channels/<name>.json``: which index is current, and which was before it."""

    schema_version: Literal["1"] = "1"
    index_digest: Digest
    previous: Digest | None
    published_at: NonEmpty

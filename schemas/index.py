"""DispatchIndex: a decision with its evidence, what servers pull and follow.

Fields added after version 1 are left out where they say nothing, so old indexes keep their digests and are served.
"""

from typing import Literal

from pydantic import Field

from schemas.base import Digest, Natural, NonEmpty, Record, absent, unset
from schemas.decision import KeyBox, Profile
from schemas.evaluation import Mode, Timer

Kept = Literal["kept_incumbent", "not_enough_rounds", "invalid"]


class MeasurementPolicy(Record):
    """How times were taken. ``version`` rises whenever earlier times stop being comparable with new ones."""

    version: int = Field(ge=1)
    cache: NonEmpty
    """What lay in the caches before a timed call, in the judge's own words (``warm``, ``cold: ...``)."""
    launch: Literal["eager", "graph"]
    timer: Timer
    mode: Mode
    profile: Profile
    rules: Digest
    """Of the numbers of the decision rule: looks, levels, minimum effect, margins."""


class KeyEvidence(Record):
    """What one decided key brings to the index; ``ratio`` and its company are None where nobody was promoted.

    ``samples_digest`` is over the sorted digests of the decision's evaluations. ``structures`` and ``distributions``
    name the length structures and input distributions that were measured; they guard nothing by themselves.
    """

    key: NonEmpty
    decision_digest: Digest
    contest_digest: Digest
    campaign: Natural
    snapshot_digest: Digest
    ratio: float | None = Field(default=None, exclude_if=unset)
    standard_error: float | None = Field(default=None, exclude_if=unset)
    interval: tuple[float, float] | None = Field(default=None, exclude_if=unset)
    rounds: Natural
    finalist_count: Natural
    samples_digest: Digest
    device_ids: tuple[NonEmpty, ...]
    drivers: tuple[NonEmpty, ...]
    library_versions: dict[str, str]
    policy: MeasurementPolicy
    structures: tuple[str, ...]
    distributions: tuple[str, ...]


class IndexEntry(Record):
    """Guarded key -> solution, with the evidence of every key that it covers.

    ``key``, the figures and ``decision_digest`` are those of the weakest of these keys (the smallest ratio). Old
    indexes also hold entries of the incumbent (``solution_digest`` None: call the caller's own function).
    """

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
    evidence: tuple[KeyEvidence, ...] = Field(default=(), exclude_if=absent)

    @property
    def covered_keys(self) -> tuple[str, ...]:
        """Every key that this entry covers, in part or whole. Not named ``keys``: dict() would call it."""
        return tuple(item.key for item in self.evidence) or (self.key,)


class KeptKey(Record):
    """A decided key without an entry, since the default serves it: what was measured, and why nobody was promoted."""

    key: NonEmpty
    box: KeyBox
    verdict: Kept
    reason: NonEmpty
    decision_digest: Digest
    evidence: KeyEvidence | None = Field(default=None, exclude_if=unset)
    """None where no round was run."""

    @property
    def solution_digest(self) -> None:
        """Like an entry of the incumbent: call the caller's own function."""
        return


class IndexedDefinition(Record):
    """All entries of one definition; the default is always the incumbent.

    ``kept`` lists the decided keys without an entry. ``dropped_count`` entries would have said what the default says:
    promoted keys and kept ones add up to the decisions.
    """

    name: NonEmpty
    op_type: NonEmpty
    definition_digest: Digest
    incumbent_digest: Digest | None
    incumbent_name: str | None
    default: Literal["incumbent"] = "incumbent"
    default_reason: NonEmpty
    entries: tuple[IndexEntry, ...]
    kept: tuple[KeptKey, ...] = Field(default=(), exclude_if=absent)
    dropped_count: Natural = Field(default=0, exclude_if=absent)

    @property
    def promoted_keys(self) -> tuple[str, ...]:
        """Keys that some entry covers, sorted; one key may have several entries."""
        return tuple(sorted({key for entry in self.entries if entry.solution_digest for key in entry.covered_keys}))


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

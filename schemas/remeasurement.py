"""Remeasurement: published gains measured once more, apart from the campaign that decided them."""

from typing import Literal

from pydantic import Field

from schemas.base import Digest, Natural, NonEmpty, Record
from schemas.decision import Profile


class KeyAgain(Record):
    """One promoted key, published and new. ``agrees`` is None where the machine or lost rounds left nothing to compare.

    ``allowed`` bounds ``difference`` = |log ratio new - log ratio published|: 1.96 sqrt(se_new^2 + se_published^2).
    """

    definition: NonEmpty
    definition_digest: Digest
    key: NonEmpty
    solution: NonEmpty
    solution_digest: Digest
    decision_digest: Digest
    published_ratio: float = Field(gt=0)
    published_error: float = Field(ge=0)
    rounds: Natural
    ratio: float | None = None
    standard_error: float | None = None
    interval: tuple[float, float] | None = None
    difference: float | None = None
    allowed: float | None = None
    agrees: bool | None = None
    reverses: bool = False
    """The new 95 % interval lies below 1: the entry makes calls slower."""
    causes: tuple[NonEmpty, ...] = ()
    """Why there is nothing to compare."""
    evaluations: tuple[Digest, ...] = ()


class Remeasurement(Record):
    """The object ``remeasured/<hex>.json``; it changes no index."""

    schema_version: Literal["1"] = "1"
    index_digest: Digest
    channel: NonEmpty
    campaign: Natural
    profile: Profile
    device_class: NonEmpty
    measured_at: NonEmpty
    entries: tuple[KeyAgain, ...]

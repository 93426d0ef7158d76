"""Decision: finalists, rounds, estimate, interval and verdict of one key."""

from typing import Literal

from pydantic import Field

from schemas.base import Digest, Natural, NonEmpty, Record

Profile = Literal["quick", "full"]
Verdict = Literal["promoted", "kept_incumbent", "not_enough_rounds", "invalid"]
Condition = Literal["significance", "min_effect", "gates_passed", "gates_speed"]


class KeyBox(Record):
    """Guard of a key: closed interval per var axis, learnt from measured points; outside it nothing is claimed."""

    definition_digest: Digest
    device_class: NonEmpty
    layout: NonEmpty
    axes: dict[NonEmpty, tuple[int, int]]

    def covers(self, axes: dict[str, int]) -> bool:
        """True if every guarded axis is bound inside its interval."""
        return all(name in axes and low <= axes[name] <= high for name, (low, high) in self.axes.items())


class Estimate(Record):
    """log-ratio statistics over paired rounds, published as ratios incumbent/candidate (> 1 is faster)."""

    solution_digest: Digest
    ratio: float = Field(gt=0)
    standard_error: float = Field(ge=0)
    interval: tuple[float, float]
    p_value: float = Field(ge=0, le=1)
    p_holm: float = Field(ge=0, le=1)
    log_ratios: tuple[float, ...]


class Decision(Record):
    """Why one key has the entry it has."""

    schema_version: Literal["1"] = "1"
    snapshot_digest: Digest
    definition_digest: Digest
    definition: NonEmpty
    key: NonEmpty
    box: KeyBox
    profile: Profile
    verdict: Verdict
    solution_digest: Digest | None
    incumbent_digest: Digest | None
    failed: tuple[Condition, ...] = ()
    reason: NonEmpty
    finalists: tuple[Digest, ...] = ()
    rounds: Natural = 0
    alpha: float
    min_effect: float
    estimates: tuple[Estimate, ...] = ()
    control: Estimate | None = None
    workloads: tuple[Digest, ...] = ()
    evaluations: tuple[Digest, ...] = ()

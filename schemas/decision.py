"""Decision: finalists, rounds, estimate, interval and verdict of one key."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from schemas.base import Digest, Natural, NonEmpty, Record, absent, unset

Profile = Literal["quick", "full"]
Verdict = Literal["promoted", "kept_incumbent", "not_enough_rounds", "invalid"]
Condition = Literal["significance", "min_effect", "gates_passed", "gates_speed"]


class KeyBox(Record):
    """Guard of a key: closed interval per var axis, learnt from measured points; outside it nothing is claimed.

    ``dtype`` is the class that ``fib_core.index.guard.dtype_class`` gives the definition. ``lengths`` maps a total
    (``num_kv_indices``) to the classes (``fib_core.workloads.axisclass``) of its mean per sequence, which
    ``fib_core.index.guard.covers`` asks too.
    """

    definition_digest: Digest
    device_class: NonEmpty
    layout: NonEmpty
    axes: dict[NonEmpty, tuple[int, int]]
    dtype: str = Field(default="", exclude_if=absent)
    lengths: dict[NonEmpty, tuple[int, int]] = Field(default={}, exclude_if=absent)

    def covers(self, axes: Mapping[str, int]) -> bool:
        """True if every guarded axis is bound inside its interval; ``lengths`` is not asked."""
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


class Spread(Record):
    """How far two runs of one program lie apart on the worker: the A/A estimates behind a minimum effect."""

    standard_error: float = Field(ge=0)
    """Of the log-ratio's estimate after this decision's rounds."""
    estimates: Natural
    """Control estimates that went in, this decision's own among them."""
    rounds: Natural
    """Their rounds, added up."""
    length: NonEmpty
    """Class of typical times that they come from, such as ``16-64 us``."""


class Decision(Record):
    """Why one key has the entry it has.

    ``causes`` is empty unless the machine made it INVALID: such a decision judges nobody, and another campaign may
    repeat it. ``device_ids``, ``timer`` and ``control_us`` (typical time of one call) tell later decisions of which
    worker, clock and kernel length this control is an A/A estimate.
    """

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
    campaign: Natural = Field(default=0, exclude_if=absent)
    causes: tuple[NonEmpty, ...] = Field(default=(), exclude_if=absent)
    forms: tuple[Digest, ...] = Field(default=(), exclude_if=absent)
    """Other declared incumbents that had to be beaten, too."""
    spread: Spread | None = Field(default=None, exclude_if=unset)
    device_ids: tuple[NonEmpty, ...] = Field(default=(), exclude_if=absent)
    timer: str = Field(default="", exclude_if=absent)
    control_us: float | None = Field(default=None, gt=0, exclude_if=unset)

"""The A/A spread of a worker: how far two runs of one program lie apart there, for calls of about one length.

In: this key's control and earlier Decisions, which remember theirs. Out: the standard error of an estimate after R
rounds, with what it was made from. Knows nothing of candidates: only controls speak about a worker's noise.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fib_core.decision.stats import standard_error
from schemas.base import Digest
from schemas.decision import Decision, Profile, Spread

LENGTH_FACTOR = 4
"""Typical times within one power of this many microseconds make a class: noise depends on length, but slowly."""


class Worker(NamedTuple):
    """What an A/A estimate is valid for; ``control_us`` is the typical time of one call."""

    device_ids: tuple[str, ...]
    timer: str
    profile: Profile
    """Profiles take different numbers of samples, so their rounds scatter differently."""
    control_us: float


class Origin(NamedTuple):
    """Which measurement a Decision's control is: the same one must not be counted twice."""

    snapshot: Digest
    definition: Digest
    key: str
    campaign: int


def length_class(time_us: float) -> str:
    """``16-64 us`` for 30.0: the power-of-four class of a typical time (> 0), written out."""
    step = math.floor(math.log(time_us, LENGTH_FACTOR) + 1e-12)
    low, high = float(LENGTH_FACTOR) ** step, float(LENGTH_FACTOR) ** (step + 1)
    return f"{low:g}-{high:g} us"


def spread(
    control: Sequence[float], worker: Worker | None, rounds: int, earlier: Iterable[Decision] = (),
    origin: Origin | None = None,
) -> Spread | None:  # fmt: skip
    """A/A standard error of the estimate after ``rounds`` rounds; None where not even this control has a spread.

    ``control``: log-ratios of this key's control. Each control gives the variance of one round, (standard error)^2 x
    rounds, of its Hodges-Lehmann estimate; variances are averaged by their degrees of freedom and divided by
    ``rounds``. Of ``earlier``, those count that the same worker measured with the same timer and profile on calls of
    this length, unless the machine made them INVALID or they are this very measurement (``origin``).
    """
    mates = [] if worker is None else [item for item in earlier if _same(item, worker) and origin_of(item) != origin]
    errors = [(len(control), standard_error(control) if control else math.inf)]
    errors += [(len(item.control.log_ratios), item.control.standard_error) for item in mates if item.control]
    known = [(count, error**2 * count) for count, error in errors if count > 1 and math.isfinite(error)]
    if not known:
        return None
    freedom = sum(count - 1 for count, _ in known)
    variance = math.fsum((count - 1) * value for count, value in known) / freedom
    return Spread(
        standard_error=math.sqrt(variance / rounds),
        estimates=len(known),
        rounds=sum(count for count, _ in known),
        length=length_class(worker.control_us) if worker else "unknown length",
    )


def origin_of(decision: Decision) -> Origin:
    """The measurement behind a Decision."""
    return Origin(decision.snapshot_digest, decision.definition_digest, decision.key, decision.campaign)


def _same(decision: Decision, worker: Worker) -> bool:
    if decision.control is None or decision.control_us is None or decision.causes:
        return False
    theirs = Worker(decision.device_ids, decision.timer, decision.profile, decision.control_us)
    return theirs[:-1] == worker[:-1] and length_class(theirs.control_us) == length_class(worker.control_us)

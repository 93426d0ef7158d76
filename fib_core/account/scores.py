"""The formulas of every score, over plain numbers; which numbers go in, and under which name, is ``scoring``'s.

In: trials (one point, one speed ratio or a failure) and calls (how often, how long before, how long now). Out: shares
and ratios, None where there is nothing to count. Numbers in brackets are the equations of the FlashInfer-Bench notes.
Knows no record, no store, no clock. Exact: sums are ``math.fsum``, areas are integrals of step functions, not grids.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fib_core.errors import ContractError


class Trial(NamedTuple):
    """One point: incumbent time / candidate time; None where it failed, or where the candidate does not apply.

    ``ratio`` 0: correct, but nobody timed it. It counts as correct and as fast as nothing.
    """

    ratio: float | None
    weight: float = 1.0


class Call(NamedTuple):
    """One logged point: calls (or their share), microseconds with the incumbent, and with what serves it now."""

    weight: float
    before_us: float
    now_us: float
    served: bool = True
    """Does a promoted solution serve it?"""


def fast_p(trials: Iterable[Trial], p: float) -> float | None:
    """Share of trials that are correct AND strictly more than ``p`` times as fast as the incumbent (11).

    At p = 0 this is the share of correct ones. Raises ContractError for a negative or undefined p.
    """
    if not p >= 0:
        raise ContractError(f"fast_p is defined for p >= 0, not for {p}")
    listed = list(trials)
    return _share((item.weight for item in listed if _faster(item.ratio, p)), (item.weight for item in listed))


def area(trials: Iterable[Trial], to: float) -> float | None:
    """The integral of fast_p over p from 0 to ``to``, on a linear axis (12): every correct ratio, cut at ``to``.

    fast_p is a step function that falls at each ratio, so its integral is the weighted mean of min(ratio, to). Raises
    ContractError unless ``to`` > 0; infinity gives the whole area.
    """
    if not to > 0:
        raise ContractError(f"an area under fast_p ends above 0, not at {to}")
    listed = list(trials)
    parts = (item.weight * min(item.ratio or 0.0, to) for item in listed)
    return _share(parts, (item.weight for item in listed))


def weighted_speedup(calls: Iterable[Call]) -> float | None:
    """Time of all calls before / now, each as often as it is logged (13): what a mean of ratios would hide."""
    listed = list(calls)
    return _share((item.weight * item.before_us for item in listed), (item.weight * item.now_us for item in listed))


def served_time(calls: Iterable[Call]) -> float | None:
    """Of the time that the incumbent would need for the logged calls, the share whose calls a promotion serves."""
    listed = list(calls)
    served = (item.weight * item.before_us for item in listed if item.served)
    return _share(served, (item.weight * item.before_us for item in listed))


def served_calls(calls: Iterable[Call]) -> float | None:
    """The share of the logged calls, by weight alone, that a promotion serves."""
    listed = list(calls)
    return _share((item.weight for item in listed if item.served), (item.weight for item in listed))


def call_us(calls: Iterable[Call]) -> float | None:
    """Mean microseconds of a logged call with the incumbent, by weight."""
    listed = list(calls)
    return _share((item.weight * item.before_us for item in listed), (item.weight for item in listed))


def overhead_share(share: float, overhead_us: float, mean_call_us: float) -> float:
    """delta of (15): what dispatching adds to a step, as a share of the step, where the op takes ``share`` of it.

    Every call pays it, served or not. The step makes share * step / mean_call_us calls, so its own length cancels.
    """
    if not (overhead_us >= 0 and mean_call_us > 0):
        raise ContractError(f"an overhead of {overhead_us} us on calls of {mean_call_us} us makes no share")
    return _as_share(share) * overhead_us / mean_call_us


def amdahl(share: float, speedup: float, delta: float = 0.0) -> float:
    """End-to-end speed-up (15) if an op that takes ``share`` of a step becomes ``speedup`` times as fast.

    ``delta``: added time as a share of the old step. Below 1 is a loss: the gain share * (1 - 1/speedup) does not pay
    for ``delta``. A serial model: nothing overlaps, and nothing else changes.
    """
    if not (speedup > 0 and delta >= 0):
        raise ContractError(f"a speed-up of {speedup} with an overhead of {delta} describes no step")
    return 1.0 / (1.0 - _as_share(share) + share / speedup + delta)


def roofline_share(bound_us: float, measured_us: float) -> float:
    """How near a time is to its roofline (1): 1 on it, 0.1 at ten times its time."""
    return bound_us / measured_us


def discoveries(p_values: Sequence[float]) -> list[float]:
    """Benjamini & Hochberg's (1995) adjusted p-values, in the order given: rejecting those up to q makes at most a
    share q of the rejections false, on average, over independent or positively dependent keys.
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index], reverse=True)
    adjusted, least = [1.0] * len(p_values), 1.0
    for place, index in enumerate(order):
        least = min(least, p_values[index] * len(p_values) / (len(p_values) - place))
        adjusted[index] = least
    return adjusted


def _faster(ratio: float | None, p: float) -> bool:
    return ratio is not None and (ratio > p or p == 0)


def _share(parts: Iterable[float], whole: Iterable[float]) -> float | None:
    total = math.fsum(whole)
    return math.fsum(parts) / total if total > 0 else None


def _as_share(share: float) -> float:
    if not 0 <= share <= 1:
        raise ContractError(f"a share of a step lies between 0 and 1; {share} does not")
    return share

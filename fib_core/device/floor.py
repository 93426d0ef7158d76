"""The roofline floor in a visit: which times are impossible, and whether the timer that reported them works.

In: samples, floors, a fresh process. Out: a verdict, or :class:`TimerFailed`, which is the machine's fault. Torch-free.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from fib_core.device.channel import close_all
from fib_core.device.child import Child, Death
from fib_core.device.faults import MachineFailure
from fib_core.device.outcome import Outcome
from fib_core.device.peaks import HEADROOM, NARROW, NARROW_ON_CUDA
from fib_core.device.referee_client import Referee
from fib_core.device.verdict import Verdict, cheated
from fib_core.roofline import Peaks, bound_us, floor_us, least_work
from schemas.evaluation import Status
from schemas.visit import VisitRequest

RULE = "below_floor"
IN_FORCE = "roofline_floor"
_SLEEP_S, _CYCLES = 0.002, 4_000_000
# A sleep ends late on a busy host, a device clocks down: the least of several calls must still come this close.
_LATE_NS, _SLOWEST_CLOCK = 1e6, 12.0
_EARLY_SHARE = 0.01
_ASK_S = 60.0


class TimerFailed(MachineFailure):
    """The timer does not report what a call of known duration takes."""

    cause = "timer_self_test"


@dataclass(frozen=True)
class Known:
    """What the known call takes: never less than ``least_ns``, and once in several times not more than ``most_ns``."""

    least_ns: float
    most_ns: float


def known_for(device: str, clock_mhz: float | None) -> Known:
    """On the host a sleep; on a CUDA device a number of clocks, whose highest rate is known."""
    if device == "cpu":
        return Known(_SLEEP_S * 1e9 * (1 - _EARLY_SHARE), _SLEEP_S * 1e9 + _LATE_NS)
    if not clock_mhz:
        return Known(0.0, float("inf"))
    least_ns = _CYCLES / clock_mhz * 1e3
    return Known(least_ns * (1 - _EARLY_SHARE), least_ns * _SLOWEST_CLOCK)


def floors_of(request: VisitRequest, peaks: Peaks) -> tuple[float, ...]:
    """One floor a workload, in microseconds."""
    return tuple(floor_us(least_work(request.definition, workload), peaks) for workload in request.workloads)


def rooflines_of(request: VisitRequest, peaks: Peaks, device: str) -> tuple[float | None, ...]:
    """One roofline a workload, in microseconds, at the peaks as they were measured; None where nothing is certain.

    Float32 vectors on the host, bfloat16 products on a CUDA device: a kernel in a narrower format, or one that finds
    its inputs nearer than the cache policy promises, may be faster. A distance, not a gate.
    """
    seen = as_measured(peaks, device)
    bounds = (bound_us(least_work(request.definition, workload), seen) for workload in request.workloads)
    return tuple(bound or None for bound in bounds)


def as_measured(peaks: Peaks, device: str) -> Peaks:
    """Peaks without the headroom that keeps honest kernels above the floor."""
    narrow = NARROW if device == "cpu" else NARROW_ON_CUDA
    return Peaks(
        near_bytes_per_s=peaks.near_bytes_per_s / HEADROOM,
        far_bytes_per_s=peaks.far_bytes_per_s / HEADROOM,
        near_capacity_bytes=peaks.near_capacity_bytes,
        flops_per_s=peaks.flops_per_s / HEADROOM / narrow,
    )


@dataclass(frozen=True)
class Floors:
    """What one visit holds its samples against."""

    bounds_us: tuple[float, ...]
    warmups: int
    known: Known
    rooflines_us: tuple[float | None, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """For the Evaluation's list of what was in force."""
        return (IN_FORCE,) if self.bounds_us else ()

    def judged(self, index: int, outcome: Outcome) -> Outcome:
        """What passed so far, held against the floor of its workload; whoever is below it is asked again."""
        if not self.bounds_us or outcome.verdict.status is not Status.PASSED:
            return outcome
        outcome = replace(outcome, roofline_us=self.rooflines_us[index] if self.rooflines_us else None)
        below = below_floor(outcome.times_us[self.warmups :], self.bounds_us[index])
        return replace(outcome, verdict=below) if below else outcome

    def check_timer(self, referee: Referee, child: Child) -> None:
        """Have the timer tested in ``child``, a fresh process, and end it; raises :class:`TimerFailed`."""
        check_timer(referee, child, self.known)


def floors_for(request: VisitRequest, peaks: Peaks | None, device: str, clock_mhz: float | None) -> Floors:
    """Without peaks there are none, and nothing is held against anybody."""
    bounds_us = floors_of(request, peaks) if peaks is not None else ()
    rooflines_us = rooflines_of(request, peaks, device) if peaks is not None else ()
    return Floors(bounds_us, request.warmup_count, known_for(device, clock_mhz), rooflines_us)


def below_floor(times_us: Sequence[float], bound_us: float) -> Verdict | None:
    """What no device does: CHEATED if the timer is sound, which is asked before anybody hears of it."""
    if not times_us or median(times_us) >= bound_us:
        return None
    reason = f"a median of {median(times_us):.4g} us; moving and computing the least takes {bound_us:.4g} us"
    return cheated(RULE, reason)


def check_timer(referee: Referee, child: Child, known: Known) -> None:
    """Time a call of known duration in ``child``, a fresh process, and end it; raises :class:`TimerFailed`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with ours, theirs:
            referee.meet(ours.fileno(), child.pid)
            close_all(child.ask({"command": "meet"}, _ASK_S, [theirs.fileno()])[1])
        order = {"command": "self_test", "sleep_s": _SLEEP_S, "cycles": _CYCLES}
        close_all(child.ask(order, _ASK_S)[1])
        child.tell({"command": "serve"})
        reply = referee.test_timer(child)
    except Death as death:
        raise TimerFailed(f"the timer could not be tested: {death}") from death
    finally:
        child.end()
    fault = wrong_with(reply["times_ns"], reply["walls_ns"], known)
    if fault is not None:
        raise TimerFailed(fault)


def wrong_with(times_ns: Sequence[int], walls_ns: Sequence[int], known: Known) -> str | None:
    """What contradicts the known duration, in words."""
    if not times_ns:
        return "the timer reported nothing"
    shortest = min(times_ns)
    if shortest < known.least_ns:
        return f"a call that takes {known.least_ns:.0f} ns at least was reported as {shortest} ns"
    if shortest > known.most_ns:
        return f"no call of a known {known.least_ns:.0f} ns was reported below {shortest} ns; is the host busy?"
    if any(taken > wall for taken, wall in zip(times_ns, walls_ns, strict=True)):
        return "a call was reported longer than the referee saw it take"
    return None

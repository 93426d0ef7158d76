"""The clocks of a CUDA device: does what the events saw fit what CUPTI recorded and what the host saw?

In: exchanges. Out: the time of a call, and a suspicion as (rule, reason), or None. Pure.
"""

from collections.abc import Sequence
from statistics import median

from fib_core.device import wire
from fib_core.device.arena import Exchange

# An event pair behind a fill that hides the launch reads about 2.5 us more than CUPTI's span on an H200.
_EVENT_SLACK_NS = 6_000
_EVENT_SHARE = 0.15
_LAUNCH_NS = 500_000
# After the last launch an honest call only returns; a host that goes on working then has taken the work over.
_RETURN_NS = 100_000
_ABSENT, _BLINDED, _DROPPED = -1, -2, -3


def primary_ns(answer: wire.Answer, timer: str = "cupti") -> int:
    """The time of a call by the timer that the Job names; the host's, where the host did the work.

    Launching takes an honest call up to some hundreds of microseconds more than the device works; returning, when the
    device is idle again, far less. Events that saw more than launching and CUPTI's record explain (a record that shows
    only a part) count instead of the record.
    """
    by_device = answer.cupti_ns if timer == "cupti" else answer.event_ns
    if answer.elapsed_ns > by_device + _LAUNCH_NS:
        return answer.elapsed_ns
    explained = by_device * (1 + _EVENT_SHARE) + answer.elapsed_ns + _EVENT_SLACK_NS
    if answer.event_ns > explained:
        return answer.event_ns
    return by_device + (max(answer.idle_ns - _RETURN_NS, 0) if timer == "cupti" else 0)


def missing(exchanges: Sequence[Exchange], timer: str) -> str | None:
    """Why the named timer gave no time, which is the machine's fault and nobody else's."""
    answers = [item.answer.cupti_ns for item in exchanges if item.answer.result == wire.OK]
    return "CUPTI records nothing on this device" if timer == "cupti" and _ABSENT in answers else None


def suspicion(exchanges: Sequence[Exchange]) -> tuple[str, str] | None:
    """The first thing that does not fit, over all calls that ended."""
    timed = [item for item in exchanges if item.answer.result == wire.OK]
    if not timed:
        return None
    return _blinded(timed) or _stray(timed) or _longer_than_seen(timed) or _disagree(timed)


def _blinded(timed: Sequence[Exchange]) -> tuple[str, str] | None:
    for item in timed:
        if item.answer.cupti_ns in (_BLINDED, _DROPPED):
            return "clock", "the device's trace was taken away during a call"
        if item.answer.cupti_ns == 0:
            return "clock", "no work of the device was recorded in a call"
    return None


def _stray(timed: Sequence[Exchange]) -> tuple[str, str] | None:
    # What ran before the first call was the solution's import.
    strays = sum(item.answer.strays for item in timed[1:])
    return ("hidden_time", f"{strays} kernels, or copies to the host, ran between calls") if strays else None


def _longer_than_seen(timed: Sequence[Exchange]) -> tuple[str, str] | None:
    for item in timed:
        longest = max(item.answer.cupti_ns, item.answer.event_ns)
        if longest > item.wall_ns:
            return "clock", f"a call took {longest} ns by the device, but its answer came after {item.wall_ns} ns"
    return None


def _disagree(timed: Sequence[Exchange]) -> tuple[str, str] | None:
    """Events that saw less than CUPTI in most calls: work on a stream that the caller's stream does not wait for."""
    known = [item.answer for item in timed if item.answer.cupti_ns > 0]
    missed = [a.cupti_ns - a.event_ns * (1 + _EVENT_SHARE) - _EVENT_SLACK_NS for a in known]
    if missed and median(missed) > 0:
        return "clock", f"the events saw {median(missed) / 1e3:.0f} us less than the device worked"
    return None

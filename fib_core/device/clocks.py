"""Two independent clocks: do the driver's samples fit what the referee saw from outside?

In: exchanges and pauses. Out: a suspicion as (rule, reason), or None. Pure. Bounds are one-sided and taken over the best
call, and CPU time is compared where waiting must not count: a busy host alone raises no suspicion.
"""

from collections.abc import Sequence

from fib_core.device import wire
from fib_core.device.arena import Exchange, Pause

# Between "go" and "done" the driver also makes tensors, seeds and copies: tens of microseconds, and a copy.
_OVERHEAD_NS = 300_000
_COPY_NS_PER_BYTE = 1.0
_OVERHEAD_SHARE = 0.25
_TICK_NS = 1_000
# Threads that end, or wait with a time-out, use a little; whoever works uses the whole pause.
_BACKGROUND_NS = 1_000_000
_BACKGROUND_SHARE = 0.2
_CORES = 1.3


def suspicion(
    exchanges: Sequence[Exchange], pauses: Sequence[Pause], copied_bytes: int, threads: int = 1
) -> tuple[str, str] | None:
    """The first thing that does not fit."""
    timed = [item for item in exchanges if item.answer.result == wire.OK and item.answer.elapsed_ns > 0]
    if not timed:
        return None
    found = _longer_than_seen(timed) or _hidden(timed, copied_bytes)
    return found or _background(pauses) or _cores(timed, threads)


def _longer_than_seen(timed: Sequence[Exchange]) -> tuple[str, str] | None:
    for item in timed:
        if item.answer.elapsed_ns > item.wall_ns + _TICK_NS:
            return "clock", f"a call reported {item.answer.elapsed_ns} ns, but its answer came after {item.wall_ns} ns"
    return None


def _hidden(timed: Sequence[Exchange], copied_bytes: int) -> tuple[str, str] | None:
    allowed = _OVERHEAD_NS + _COPY_NS_PER_BYTE * copied_bytes
    excess = [item.cpu_ns - item.answer.elapsed_ns * (1 + _OVERHEAD_SHARE) for item in timed]
    if min(excess) <= allowed:
        return None
    return "hidden_time", f"every call used at least {min(excess) / 1e3:.0f} us of CPU beyond the time it reported"


def _background(pauses: Sequence[Pause]) -> tuple[str, str] | None:
    worked, paused = sum(item.background_ns for item in pauses), sum(item.wall_ns for item in pauses)
    if worked <= _BACKGROUND_NS + _BACKGROUND_SHARE * paused:
        return None
    return "hidden_time", f"threads or children worked {worked / 1e3:.0f} us in {paused / 1e3:.0f} us between calls"


def _cores(timed: Sequence[Exchange], threads: int) -> tuple[str, str] | None:
    shares = [item.cpu_ns / (item.wall_ns + 1e6) for item in timed]
    if min(shares) <= _CORES * threads:
        return None
    return "hidden_time", f"every call kept {min(shares):.1f} cores busy, {threads} allowed"

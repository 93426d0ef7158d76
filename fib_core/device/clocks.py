"""Two independent clocks: do the driver's samples fit what the referee saw from outside?

In: turns. Out: a suspicion as (rule, reason), or None. Pure. Medians over the timed calls, and CPU time where waiting
must not count: a busy host alone raises no suspicion. Whoever is suspected is asked again in a fresh process before it
is a verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from fib_core.device.arena import Exchange, Rest

# Around the calls the driver also makes tensors, seeds and copies; a shared host's kernel counts stolen time as used.
_OVERHEAD_NS = 500_000
# It stays awake for 200 us at most for the order that follows a priming, and copies no slower than this: so far what it
# says of its own work is believed.
_OWN_NS = 250_000
_COPY_NS_PER_BYTE = 1.0
_OVERHEAD_SHARE = 0.25
# By the driver's own clock, with nobody to wait for: before and after the call, and from the moment at which the first
# bytes of the inputs were there.
_EDGE_NS = 120_000
_PLACED_NS = 50_000
_TICK_NS = 1_000
# Threads that end, or wait with a time-out, use a little; whoever works uses the whole pause.
_BACKGROUND_NS = 1_000_000
_BACKGROUND_SHARE = 0.2
_CORES = 1.3

Suspicion = tuple[str, str] | None


@dataclass(frozen=True)
class Turn:
    """One call with what led to it: rest, priming calls, the call itself, rest again."""

    before: Rest
    primed: Exchange
    called: Exchange
    after: Rest

    @property
    def elapsed_ns(self) -> int:
        """The driver's time of the call."""
        return self.called.answer.elapsed_ns

    @property
    def reported_ns(self) -> int:
        """The driver's time of the call and of those that primed it, which meet cold caches and may take longer."""
        return self.elapsed_ns + self.primed.answer.elapsed_ns

    @property
    def cpu_ns(self) -> int:
        """CPU time from rest to rest."""
        return self.after.cpu_ns - self.before.cpu_ns


def suspicion(
    turns: Sequence[Turn], copied_bytes: int, warmups: int, threads: int = 1, staged_bytes: int = 0
) -> Suspicion:
    """The first thing that does not fit. ``staged_bytes``: what the driver itself put in place before each call."""
    timed = turns[warmups:] or turns
    if not timed:
        return None
    found = _longer_than_seen(turns) or _edges(timed, staged_bytes)
    found = found or _hidden(timed, copied_bytes, staged_bytes)
    return found or _background(turns) or _cores(timed, threads)


def _longer_than_seen(turns: Sequence[Turn]) -> Suspicion:
    for turn in turns:
        if turn.elapsed_ns > turn.called.wall_ns + _TICK_NS:
            return "clock", f"a call reported {turn.elapsed_ns} ns, but its answer came after {turn.called.wall_ns} ns"
    return None


def _edges(timed: Sequence[Turn], staged_bytes: int) -> Suspicion:
    """Something ran before the start or after the end of most calls: threads, finalizers, hooks."""
    before_ns = _PLACED_NS + _COPY_NS_PER_BYTE * staged_bytes if staged_bytes else _EDGE_NS
    allowed_ns = {"before": before_ns, "after": _EDGE_NS}
    answers = [turn.called.answer for turn in timed]
    edges = {"before": [item.head_ns for item in answers], "after": [item.tail_ns for item in answers]}
    for name, spent in edges.items():
        if median(spent) > allowed_ns[name]:
            return "hidden_time", f"{median(spent) / 1e3:.0f} us passed {name} the timed part of most calls"
    return None


def _hidden(timed: Sequence[Turn], copied_bytes: int, staged_bytes: int) -> Suspicion:
    """CPU time, children's included, beyond what the calls reported and what the driver did itself."""
    allowed, moved = _OVERHEAD_NS + _COPY_NS_PER_BYTE * copied_bytes, staged_bytes + copied_bytes
    own_ns = [min(turn.called.answer.own_ns, _OWN_NS + _COPY_NS_PER_BYTE * moved) for turn in timed]
    reported_ns = [turn.reported_ns * (1 + _OVERHEAD_SHARE) for turn in timed]
    excess = median(turn.cpu_ns - own - told for turn, own, told in zip(timed, own_ns, reported_ns, strict=True))
    if excess <= allowed:
        return None
    return "hidden_time", f"most calls used {excess / 1e3:.0f} us of CPU more than they reported"


def _background(turns: Sequence[Turn]) -> Suspicion:
    pairs = list(pairwise(turns))
    worked = sum(later.before.cpu_ns - earlier.after.cpu_ns for earlier, later in pairs)
    paused = sum(later.before.at_ns - earlier.after.at_ns for earlier, later in pairs)
    if worked <= _BACKGROUND_NS + _BACKGROUND_SHARE * paused:
        return None
    return "hidden_time", f"threads or children worked {worked / 1e3:.0f} us in {paused / 1e3:.0f} us between calls"


def _cores(timed: Sequence[Turn], threads: int) -> Suspicion:
    shares = [turn.cpu_ns / (turn.primed.wall_ns + turn.called.wall_ns + 1e6) for turn in timed]
    if min(shares) <= _CORES * threads:
        return None
    return "hidden_time", f"every call kept {min(shares):.1f} cores busy, {threads} allowed"

"""Was the machine fit to judge? What it did during a contest, read from the incumbent and its control alone.

In: their timed Evaluations of one campaign, and a limit. Out: the machine's faults in words; none = sound. A fault
makes a decision INVALID: it says nothing about any candidate, so no candidate's time is looked at here. Slow drift
cancels inside a round, but a machine that changed between the halves of a contest is not one machine.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from schemas.evaluation import Evaluation

DRIFT_NOISE_FACTOR = 3.5
"""Standard errors of the difference between the halves that honest noise of any size may reach.

With the profiles' limits, simulated: independent noise of 18 % a process trips 0.3 % of contests of 10 rounds, an
autoregressive drift of 1 % under 0.1 %, whatever its speed; a step of 10 % after 3 to 7 of 10 rounds is caught in 98 %.
"""
DRIFT_ROUNDS_MIN = 6
CLOCK_SLACK_MHZ = 50.0
CLOCK_IDLE_SHARE = 0.5
"""Below this share of the highest clock a reading came too late: the device had gone idle."""
CLOCK_SHARE_MAX = 0.025
"""Of a CPU's clock, which moves in other steps than a GPU's."""
EVENTS_SHARE_MAX = 0.15
EVENTS_ABOVE_US = 60.0
"""Events see a launch that the device waits for: up to 40 us where calls are traced, and some room."""
EVENTS_BELOW_US = 6.0
"""Work that the events do not see; the judge allows a candidate as much."""
_MEDIAN_ERROR = math.sqrt(math.pi / 2)


def causes(watched: Iterable[Evaluation], rounds: int, drift_max: float) -> tuple[str, ...]:
    """Faults of the machine in the first ``rounds`` rounds that were timed, each as ``word: what was seen``.

    ``watched``: evaluations of the incumbent and its control. ``drift_max``: log-change between the halves.
    """
    items = [item for item in watched if item.samples_us]
    numbers = set(sorted({item.job.round for item in items})[:rounds])
    seen = sorted((item for item in items if item.job.round in numbers), key=_place)
    found = (_drift(seen, drift_max), _clocks(seen), _devices(seen), _others(seen), _timers(seen))
    return tuple(text for text in found if text)


def round_levels(watched: Sequence[Evaluation]) -> list[float]:
    """Per round, in order: mean over series of log(time / the series' median); a series is one role on one workload."""
    series: defaultdict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for item in watched:
        series[item.job.role, item.job.workload_digest][item.job.round] = math.log(median(item.samples_us))
    levels: defaultdict[int, list[float]] = defaultdict(list)
    for _, times in sorted(series.items()):
        middle = median(times.values())
        for number, value in times.items():
            levels[number].append(value - middle)
    return [math.fsum(values) / len(values) for _, values in sorted(levels.items())]


def half_shift(levels: Sequence[float]) -> tuple[float, float]:
    """Median of the second half less that of the first, and the standard error that round-to-round noise gives it.

    The noise comes from successive differences (von Neumann 1941), which neither a ramp nor a single step inflates
    much: noise that explains the shift excuses it.
    """
    half = len(levels) // 2
    steps = [later - earlier for earlier, later in pairwise(levels)]
    noise = math.sqrt(math.fsum(step * step for step in steps) / len(steps) / 2)
    error = _MEDIAN_ERROR * noise * math.sqrt(1 / half + 1 / (len(levels) - half))
    return median(levels[half:]) - median(levels[:half]), error


def _place(item: Evaluation) -> tuple[int, str, str]:
    return item.job.round, item.job.role, item.job.workload_digest


def _drift(seen: Sequence[Evaluation], limit: float) -> str:
    levels = round_levels(seen)
    if len(levels) < DRIFT_ROUNDS_MIN:
        return ""
    shift, error = half_shift(levels)
    if abs(shift) <= max(limit, DRIFT_NOISE_FACTOR * error):
        return ""
    way = "slower" if shift > 0 else "faster"
    return f"drift: the incumbent ran {abs(math.expm1(shift)):.1%} {way} in the second half (limit {limit:.0%})"


def _clocks(seen: Sequence[Evaluation]) -> str:
    """Typical clocks of rounds that lie apart: the highest that the device offers, and the one right after a turn."""
    for name, reading in (("highest", _highest_mhz), ("current", _current_mhz)):
        per_round: defaultdict[int, list[float]] = defaultdict(list)
        for item in seen:
            clock_mhz = reading(item)
            if clock_mhz is not None:
                per_round[item.job.round].append(clock_mhz)
        clocks = [median(values) for values in per_round.values()]
        if clocks and max(clocks) - min(clocks) > _clock_slack_mhz(seen[0], max(clocks)):
            return f"clocks: the {name} clock was {min(clocks):.0f} to {max(clocks):.0f} MHz, by round"
    return ""


def _clock_slack_mhz(item: Evaluation, clock_mhz: float) -> float:
    on_gpu = item.environment.device_class.startswith("sm_")
    return CLOCK_SLACK_MHZ if on_gpu else CLOCK_SHARE_MAX * clock_mhz


def _highest_mhz(item: Evaluation) -> float | None:
    return item.environment.clock_mhz


def _current_mhz(item: Evaluation) -> float | None:
    clock_mhz = item.conditions.clock_mhz if item.conditions else None
    idle_mhz = CLOCK_IDLE_SHARE * (item.environment.clock_mhz or 0.0)
    return clock_mhz if clock_mhz is not None and clock_mhz > idle_mhz else None


def _devices(seen: Sequence[Evaluation]) -> str:
    """A round belongs to one device."""
    per_round: defaultdict[int, set[str]] = defaultdict(set)
    for item in seen:
        per_round[item.job.round].add(item.environment.device_id)
    split = [number for number, devices in sorted(per_round.items()) if len(devices) > 1]
    return f"devices: round {split[0]} was measured on {len(per_round[split[0]])} devices" if split else ""


def _others(seen: Sequence[Evaluation]) -> str:
    """Rounds that found somebody else on the device."""
    found = {item.job.round: item.conditions.other_processes for item in seen if item.conditions}
    rounds = [number for number, count in sorted(found.items()) if count]
    return f"another process: {found[rounds[0]]} on the device in round {rounds[0]}" if rounds else ""


def _timers(seen: Sequence[Evaluation]) -> str:
    """Workloads on which most evaluations have two clocks that do not fit together."""
    apart: defaultdict[str, list[str]] = defaultdict(list)
    for item in seen:
        if item.second_clock_us:
            apart[item.job.workload_digest].append(_apart(item))
    for _, texts in sorted(apart.items()):
        bad = [text for text in texts if text]
        if 2 * len(bad) > len(texts):
            return f"timers disagree: {bad[0]}, in {len(bad)} of {len(texts)} visits of a workload"
    return ""


def _apart(item: Evaluation) -> str:
    """What one evaluation's two clocks say, if they do not fit together; medians, since a launch may be late."""
    first, second = median(item.samples_us), median(item.second_clock_us)
    low, high = first * (1 - EVENTS_SHARE_MAX) - EVENTS_BELOW_US, first * (1 + EVENTS_SHARE_MAX) + EVENTS_ABOVE_US
    return "" if low <= second <= high else f"{first:.1f} us by the first clock, {second:.1f} us by the second"

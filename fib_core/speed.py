"""Speed of a whole run: fast_p over solutions and the weighted speed-up of what was promoted.

In: screen Evaluations and Decisions. Out: shares and ratios. fast_p(t) is the share of (solution, workload) pairs that
are correct AND more than t times as fast as the incumbent; whatever failed or does not apply counts as not fast.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from fib_core.axisclass import class_key
from fib_core.contest import screen_times
from fib_core.lookup import find
from schemas.base import Digest
from schemas.decision import Decision
from schemas.evaluation import Evaluation, Status
from schemas.index import DispatchIndex
from schemas.snapshot import Snapshot
from schemas.solution import Solution
from schemas.trace import TraceRecord

THRESHOLDS = (0.0, 1.0, 1.5, 2.0)
_UNTIMED = 1e-9


def fast_p(
    evaluations: Iterable[Evaluation],
    decisions: Iterable[Decision],
    solutions: Collection[Digest] | Mapping[Digest, Solution],
    not_applicable: Collection[tuple[Digest, Digest]] = (),
    thresholds: Sequence[float] = THRESHOLDS,
) -> dict[float, float]:
    """Threshold -> share of candidate pairs; empty without an incumbent to compare with. INVALID pairs are left out."""
    screened = list(evaluations)
    incumbent_of = {item.definition_digest: item.incumbent_digest for item in decisions if item.incumbent_digest}
    times = screen_times(screened)
    ratios: list[float] = []
    for item in screened:
        incumbent = incumbent_of.get(item.job.definition_digest)
        if incumbent in (None, item.job.solution_digest) or item.status is Status.INVALID:
            continue
        ratios.append(_ratio(times, str(incumbent), item))
    ratios += [-1.0 for solution, _ in not_applicable if solution in solutions]
    return {limit: sum(ratio > limit for ratio in ratios) / len(ratios) for limit in thresholds} if ratios else {}


def weighted_speedups(snapshot: Snapshot, decisions: Iterable[Decision]) -> dict[str, float]:
    """Definition -> geometric mean, by train weight, of the ratio that the index gives; 1 where the incumbent stays."""
    gains = {(item.definition_digest, item.key): _published(item) for item in decisions}
    definitions = {item.digest: item.name for item in snapshot.definitions}
    logs: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for item in snapshot.workloads:
        key = (item.workload.definition_digest, class_key(item.workload.axes))
        if item.split == "train" and key in gains:
            logs[definitions[key[0]]].append((item.weight, math.log(gains[key])))
    return {name: _geometric(pairs) for name, pairs in sorted(logs.items())}


def coverage(index: DispatchIndex, records: Iterable[TraceRecord]) -> dict[str, tuple[float, float]]:
    """Definition -> (share of logged calls inside some measured box, share served by a promoted solution).

    What lies outside falls back to the incumbent unmeasured: a small share here says that boxes are too narrow.
    """
    digests = {block.name: block.definition_digest for block in index.definitions}
    known = (item for item in records if item.definition in digests)
    calls = Counter((item.definition, tuple(sorted(item.axes.items()))) for item in known)
    totals: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    served: Counter[str] = Counter()
    for (name, axes), count in calls.items():
        entry = find(index, digests[name], dict(axes))
        totals[name] += count
        inside[name] += count if entry else 0
        served[name] += count if entry and entry.solution_digest else 0
    return {name: (inside[name] / total, served[name] / total) for name, total in sorted(totals.items())}


def _ratio(times: Mapping[tuple[Digest, Digest], float], incumbent: Digest, item: Evaluation) -> float:
    """Incumbent time / solution time; -1 for a failure, barely above 0 where it is correct but was not timed."""
    if item.status is not Status.PASSED:
        return -1.0
    old = times.get((incumbent, item.job.workload_digest))
    new = times.get((item.job.solution_digest, item.job.workload_digest))
    return old / new if old is not None and new is not None else _UNTIMED


def _published(decision: Decision) -> float:
    if decision.verdict != "promoted":
        return 1.0
    return next(item.ratio for item in decision.estimates if item.solution_digest == decision.solution_digest)


def _geometric(pairs: Sequence[tuple[float, float]]) -> float:
    total = math.fsum(weight for weight, _ in pairs)
    return math.exp(math.fsum(weight * log for weight, log in pairs) / total) if total > 0 else 1.0

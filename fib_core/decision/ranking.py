"""Who is worth confirming: ratios per key from screen times, and the few that cover the keys best.

In: a Contest with its incumbent, (solution, workload) times. Out: ratios and an ordered choice. No uncertainty here:
that is what confirmation is for.
"""

import math
from collections.abc import Sequence

from fib_core.decision.contest import Contest, Times
from fib_core.workloads.axisclass import class_key
from schemas.base import Digest
from schemas.snapshot import Placed


def key_ratios(contest: Contest, solution: Digest, times: Times) -> dict[str, float]:
    """Timed key -> incumbent time / solution time, weighted over its timed train workloads where both have times."""
    assert contest.incumbent is not None
    incumbent = contest.incumbent.solution_digest
    ratios: dict[str, float] = {}
    for key, items in timed_keys(contest).items():
        pairs = [
            (item.weight, times.get((incumbent, item.workload.digest)), times.get((solution, item.workload.digest)))
            for item in items
        ]
        both = [(weight, old, new) for weight, old, new in pairs if old is not None and new is not None]
        if len(both) == len(items):
            ratios[key] = sum(w * old for w, old, _ in both) / sum(w * new for w, _, new in both)
    return ratios


def timed_keys(contest: Contest) -> dict[str, list[Placed]]:
    """Key -> its train workloads that the profile times."""
    keys: dict[str, list[Placed]] = {}
    for item in contest.timed:
        if item.split == "train":
            keys.setdefault(class_key(item.workload.axes), []).append(item)
    return keys


def best_ratio(contest: Contest, solution: Digest, times: Times) -> float:
    """The best key's ratio; 0 where nothing was timed."""
    return max(key_ratios(contest, solution, times).values(), default=0.0)


def cover(contest: Contest, solutions: Sequence[Digest], times: Times, limit: int) -> list[Digest]:
    """Greedy choice of at most ``limit``: each pick adds most to the weighted log gain over all timed keys.

    A rival that adds nothing still takes a free place if it is the best of the rest: screen times are rough.
    """
    ratios = {item: key_ratios(contest, item, times) for item in solutions}
    weights = {key: sum(item.weight for item in items) for key, items in timed_keys(contest).items()}
    chosen: list[Digest] = []
    best = dict.fromkeys(weights, 0.0)
    while len(chosen) < min(limit, len(solutions)):
        rest = [item for item in solutions if item not in chosen]
        pick = max(rest, key=lambda item: (_added(ratios[item], weights, best), sum(ratios[item].values()), item))
        chosen.append(pick)
        best = {key: max(best[key], _gain(ratios[pick], key)) for key in weights}
    return chosen


def _added(ratios: dict[str, float], weights: dict[str, float], best: dict[str, float]) -> float:
    return math.fsum(weight * max(_gain(ratios, key) - best[key], 0.0) for key, weight in weights.items())


def _gain(ratios: dict[str, float], key: str) -> float:
    return math.log(ratios[key]) if ratios.get(key, 0.0) > 0 else 0.0

"""Who is the incumbent: the fastest competent form, chosen by measurement among those that the snapshot declares.

In: a Contest under way, entrants with their faults, screen times. Out: the incumbent, and other forms that must
be beaten where they are faster. Nothing here looks at candidates.
"""

from collections.abc import Mapping, Sequence

from fib_core.decision.contest import Contest, Times, applies
from fib_core.decision.ranking import key_ratios
from schemas.base import Digest
from schemas.visit import Contestant

FORM_RATIO_MIN = 1.03
"""A declared form counts as the fastest at a key if the screen saw it this much faster than the incumbent there."""


def measured_incumbent(
    contest: Contest, entrants: Sequence[Contestant], faults: Mapping[Digest, str | None], times: Times
) -> Contestant | None:
    """The fastest eligible declared incumbent that applies everywhere, by weighted train time."""
    totals: list[tuple[float, Digest, Contestant]] = []
    for entrant in entrants:
        everywhere = all(applies(entrant, contest.definition, item.workload) for item in contest.placed)
        if entrant.role != "incumbent" or faults[entrant.solution_digest] is not None or not everywhere:
            continue
        spent = [
            (item.weight, times.get((entrant.solution_digest, item.workload.digest))) for item in contest.train
        ]
        if spent and all(time is not None for _, time in spent):
            total = sum(weight * time for weight, time in spent if time is not None)
            totals.append((total, entrant.solution_digest, entrant))
    return min(totals, key=lambda item: item[:2])[2] if totals else None


def why_none(entrants: Sequence[Contestant], faults: Mapping[Digest, str | None]) -> str:
    """Why a definition has no usable incumbent."""
    declared = [item for item in entrants if item.role == "incumbent"]
    if not declared:
        return "no incumbent is declared: ranked, never dispatched"
    first = declared[0]
    why = faults[first.solution_digest] or "it was not timed on every train workload"
    return f"no declared incumbent is usable ({first.solution.name}: {why}): ranked, never dispatched"


def rival_forms(
    contest: Contest, entrants: Sequence[Contestant], faults: Mapping[Digest, str | None], times: Times
) -> tuple[Contestant, ...]:
    """Other declared incumbents that were clearly the fastest form at some timed key."""
    assert contest.incumbent is not None
    declared = [
        item
        for item in entrants
        if item.role == "incumbent" and faults[item.solution_digest] is None and item != contest.incumbent
    ]
    ratios = {item.solution_digest: key_ratios(contest, item.solution_digest, times) for item in declared}
    best: set[Digest] = set()
    for key in {key for per_key in ratios.values() for key in per_key}:
        digest = max(ratios, key=lambda item: (ratios[item].get(key, 0.0), item))
        if ratios[digest].get(key, 0.0) > FORM_RATIO_MIN:
            best.add(digest)
    return tuple(item for item in declared if item.solution_digest in best)

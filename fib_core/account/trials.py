"""Which points a score counts: candidate pairs of the screen, and keys as the index decides them.

In: a snapshot, Evaluations, Decisions. Out: populations, one per definition and side. A failure and a pair that does
not apply are trials without a ratio; a pair that the machine spoiled, the incumbent's time included, is none.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median

from fib_core.account.scores import Trial
from fib_core.account.scoring import CONFIRMED, SCREEN_TIMES, Population
from schemas.base import Digest
from schemas.decision import Decision
from schemas.evaluation import Evaluation, Status
from schemas.snapshot import Placed, Snapshot, Split

PAIRS = "pairs of candidate and workload"
KEYS = "keys, each as it is served"
SIDES: tuple[Split, ...] = ("train", "holdout", "stress")
Pair = tuple[Digest, Digest]
Times = Mapping[Pair, float]


def incumbents_of(decisions: Iterable[Decision]) -> dict[Digest, Digest]:
    """Definition -> the incumbent that its decisions are against."""
    return {item.definition_digest: item.incumbent_digest for item in decisions if item.incumbent_digest}


def last_of(evaluations: Iterable[Evaluation]) -> dict[Pair, Evaluation]:
    """(solution, workload) -> its last evaluation; controls are incumbents under a false name and stay out."""
    return {
        (item.job.solution_digest, item.job.workload_digest): item for item in evaluations if item.job.role != "control"
    }


def median_times(evaluations: Iterable[Evaluation]) -> dict[Pair, float]:
    """(solution, workload) -> median over its evaluations (one a round) of their medians, in microseconds."""
    found: dict[Pair, list[float]] = {}
    for item in evaluations:
        if item.status is Status.PASSED and item.samples_us and item.job.role != "control":
            pair = item.job.solution_digest, item.job.workload_digest
            found.setdefault(pair, []).append(median(item.samples_us))
    return {pair: median(values) for pair, values in found.items()}


def screen_populations(
    snapshot: Snapshot,
    evaluations: Iterable[Evaluation],
    decisions: Iterable[Decision],
    not_applicable: Collection[Pair] = (),
) -> list[Population]:
    """Candidate pairs of the screen. Definitions without an incumbent have nothing to be compared with.

    Declared incumbents are no candidates. Whoever cheated anywhere is barred everywhere: all its pairs are failures.
    """
    screened, incumbents = last_of(evaluations), incumbents_of(decisions)
    barred = {solution for (solution, _), item in screened.items() if item.status is Status.CHEATED}
    sides = {(item.workload.definition_digest, item.workload.digest): item.split for item in snapshot.workloads}
    names = {item.digest: item.name for item in snapshot.definitions}
    groups: dict[tuple[Digest, Split], list[Trial | None]] = {}
    for (solution, workload), item in screened.items():
        definition = item.job.definition_digest
        incumbent, side = incumbents.get(definition), sides.get((definition, workload))
        if incumbent is not None and side is not None and item.job.role == "candidate":
            against = screened.get((incumbent, workload))
            trial = Trial(None) if solution in barred else _trial(item, against)
            groups.setdefault((definition, side), []).append(trial)
    for definition, side in _outside(not_applicable, sides):
        if definition in incumbents:
            groups.setdefault((definition, side), []).append(Trial(None))
    return [
        Population(
            definition=names[definition], side=side, what=PAIRS, times=SCREEN_TIMES,
            trials=tuple(item for item in trials if item is not None), invalid=trials.count(None),
            baseline=(incumbents[definition],), snapshot_digest=snapshot.digest,
        )
        for (definition, side), trials in sorted(groups.items(), key=lambda e: (names[e[0][0]], SIDES.index(e[0][1])))
    ]  # fmt: skip


def key_populations(snapshot: Snapshot, decisions: Sequence[Decision]) -> list[Population]:
    """Keys as they are served: a promotion by its confirmed estimate, anything else by the incumbent, at exactly 1.

    Decisions that the machine spoiled are kept out and counted.
    """
    groups: dict[Digest, list[Decision]] = {}
    for item in decisions:
        groups.setdefault(item.definition_digest, []).append(item)
    incumbents = incumbents_of(decisions)
    return [
        Population(
            definition=items[0].definition, side="train", what=KEYS, times=CONFIRMED,
            trials=tuple(Trial(published(item)) for item in items if item.verdict != "invalid"),
            invalid=sum(item.verdict == "invalid" for item in items),
            baseline=(incumbents[digest],), snapshot_digest=snapshot.digest,
        )
        for digest, items in sorted(groups.items(), key=lambda each: each[1][0].definition)
        if digest in incumbents
    ]  # fmt: skip


def published(decision: Decision) -> float:
    """The estimate that stands in the index; 1 where the incumbent stays."""
    if decision.verdict != "promoted":
        return 1.0
    return next(item.ratio for item in decision.estimates if item.solution_digest == decision.solution_digest)


def placed_on(snapshot: Snapshot, definition_digest: Digest, side: Split) -> list[Placed]:
    """Workloads of one definition on one side, in snapshot order."""
    return [
        item
        for item in snapshot.workloads
        if item.split == side and item.workload.definition_digest == definition_digest
    ]


def _trial(item: Evaluation, incumbent: Evaluation | None) -> Trial | None:
    """None where the machine spoiled one of the two."""
    if item.status is Status.INVALID or (incumbent is not None and incumbent.status is Status.INVALID):
        return None
    if item.status is not Status.PASSED:
        return Trial(None)
    if not item.samples_us or incumbent is None or incumbent.status is not Status.PASSED or not incumbent.samples_us:
        return Trial(0.0)
    return Trial(median(incumbent.samples_us) / median(item.samples_us))


def _outside(not_applicable: Collection[Pair], sides: Mapping[Pair, Split]) -> list[tuple[Digest, Split]]:
    """Definition and side of every pair outside its solution's support."""
    places = {workload: (definition, side) for (definition, workload), side in sides.items()}
    return [places[workload] for _, workload in sorted(set(not_applicable)) if workload in places]

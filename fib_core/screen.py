"""Room 4, screen: Snapshot x Solutions in; visits to carry out, then the incumbent and the finalists of a definition.

Pure planning and choosing: what is measured comes back as Evaluations. First timings choose who is worth confirming;
they are never published as gains. Knows nothing of rounds or intervals.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fib_core.decision.contest import (
    Contest,
    Times,
    VisitSettings,
    applies,
    placed_of,
    screen_times,
    toothless_workloads,
)
from fib_core.decision.incumbents import measured_incumbent, rival_forms, why_none
from fib_core.decision.profiles import Rules
from fib_core.decision.ranking import best_ratio, cover
from fib_core.workloads.axisclass import are_neighbours, class_key
from fib_core.workloads.families import CORE
from schemas.base import Digest
from schemas.definition import Definition
from schemas.evaluation import Evaluation, Status
from schemas.snapshot import Placed, Snapshot
from schemas.solution import Solution
from schemas.visit import Contestant, VisitRequest
from schemas.workload import Workload

Pair = tuple[Digest, Digest]
NO_HOLDOUT = "no holdout: fewer than {} shape families, so nothing may be promoted"
# A quick run keeps this many of its timed workloads for each of the two gates.
_GATE_SLOTS = 1


@dataclass(frozen=True)
class ScreenPlan:
    """Visits of one definition, and the pairs that need none."""

    requests: list[VisitRequest]
    not_applicable: list[Pair]
    finished_count: int


def contestants(
    definition: Definition, solutions: Iterable[Solution], incumbents: Mapping[Digest, Sequence[Digest]]
) -> list[Contestant]:
    """Solutions of one definition: declared incumbents first, in declared order, then candidates by digest."""
    digest = definition.digest
    mine = {item.digest_for(digest): item for item in solutions if item.definition == definition.name}
    declared = [item for item in incumbents.get(digest, ()) if item in mine]
    rest = sorted(mine.keys() - set(declared))
    return [
        Contestant(role="incumbent" if item in declared else "candidate", solution=mine[item], solution_digest=item)
        for item in [*declared, *rest]
    ]


def plan(
    snapshot: Snapshot,
    definition: Definition,
    entrants: Sequence[Contestant],
    settings: VisitSettings,
    seed: str,
    finished: Collection[Pair] = (),
    incumbent_errors: Mapping[str, dict[str, float]] | None = None,
) -> ScreenPlan:
    """One visit per entrant, in the order given, through its unfinished workloads; none where it does not apply."""
    placed = placed_of(snapshot, definition)
    requests: list[VisitRequest] = []
    outside: list[Pair] = []
    for entrant in entrants:
        inside = [item.workload for item in placed if applies(entrant, definition, item.workload)]
        names = {item.digest for item in inside}
        outside += [
            (entrant.solution_digest, item.workload.digest) for item in placed if item.workload.digest not in names
        ]
        todo = [item for item in inside if (entrant.solution_digest, item.digest) not in finished]
        if todo:
            requests.append(_request(definition, entrant, todo, settings, seed, incumbent_errors))
    visited = sum(len(item.workloads) for item in requests)
    return ScreenPlan(requests, outside, len(placed) * len(entrants) - len(outside) - visited)


def timed_workloads(snapshot: Snapshot, definition: Definition, rules: Rules) -> tuple[Placed, ...]:
    """Workloads of the confirmation rounds: all, or the profile's few: a core, heaviest keys, one holdout, one stress.

    A core (tagged by the selection) comes first: a box between its train calls, its holdout in the gap. Without one the
    holdout is the one whose shape lies next to most of the train weight: it says something about most keys.
    """
    placed = placed_of(snapshot, definition)
    if rules.timed_limit is None or len(placed) <= rules.timed_limit:
        return placed
    by_weight = sorted(placed, key=lambda item: (CORE not in item.workload.tags, -item.weight, item.workload.digest))
    train = [item for item in by_weight if item.split == "train"]
    holdout = [item for item in by_weight if item.split == "holdout"]
    holdout.sort(key=lambda item: (CORE not in item.workload.tags, -_nearby(item, train)))
    stress = [item for item in by_weight if item.split == "stress"]
    gates = [*holdout[:_GATE_SLOTS], *stress[:_GATE_SLOTS]]
    core = [item for item in train if CORE in item.workload.tags]
    others = [item for item in train if item not in core]
    train = [*core, *_heaviest_keys(others, len(others))][: rules.timed_limit - len(gates)]
    chosen = {item.workload.digest for item in [*gates, *train]}
    return tuple(item for item in placed if item.workload.digest in chosen)


def finalists(
    snapshot: Snapshot,
    definition: Definition,
    entrants: Sequence[Contestant],
    evaluations: Iterable[Evaluation],
    rules: Rules,
) -> Contest:
    """Choose the incumbent by measurement, then at most ``rules.finalist_limit`` eligible entrants that may beat it."""
    verdicts = {(item.job.solution_digest, item.job.workload_digest): item for item in evaluations}
    placed, times = placed_of(snapshot, definition), screen_times(verdicts.values())
    base = Contest(
        snapshot_digest=snapshot.digest,
        definition=definition,
        placed=placed,
        timed=timed_workloads(snapshot, definition, rules),
        incumbent=None,
        finalists=(),
        blocked=None,
        toothless=toothless_workloads(verdicts.values()),
    )
    faults = {item.solution_digest: _fault(item, base, verdicts) for item in entrants}
    incumbent = measured_incumbent(base, entrants, faults, times)
    if incumbent is None:
        notes = {digest: fault or "passed; ranked only" for digest, fault in faults.items()}
        return replace(base, blocked=why_none(entrants, faults), notes=notes)
    base = replace(base, incumbent=incumbent)
    chosen, notes = _choose(base, entrants, faults, times, rules)
    forms = rival_forms(base, entrants, faults, times)
    notes |= {item.solution_digest: "another form of the incumbent: to be beaten where it is faster" for item in forms}
    return replace(base, finalists=chosen, forms=forms, notes=notes, blocked=_blocked(base, chosen, rules))


def incumbent_errors(evaluations: Iterable[Evaluation], incumbent: Digest) -> dict[str, dict[str, float]]:
    """Workload digest -> output -> the incumbent's own largest error, where it is known."""
    return {
        item.job.workload_digest: {
            name: figures.max_abs for name, figures in item.errors.items() if figures.max_abs is not None
        }
        for item in evaluations
        if item.job.solution_digest == incumbent and item.status is Status.PASSED
    }


def _request(
    definition: Definition,
    entrant: Contestant,
    todo: Sequence[Workload],
    settings: VisitSettings,
    seed: str,
    errors: Mapping[str, dict[str, float]] | None,
) -> VisitRequest:
    return VisitRequest(
        definition=definition, workloads=todo, contestants=(entrant,), stage="screen", round=0, seed=seed,
        warmup_count=settings.warmup_count, sample_count=settings.sample_count, input_sets=settings.input_sets,
        sampling_draws=settings.sampling_draws, limits=settings.limits, mode=settings.mode,
        blob_root=settings.blob_root, incumbent_errors=dict(errors or {}),
    )  # fmt: skip


def _nearby(item: Placed, train: Sequence[Placed]) -> float:
    """Train weight within one class step of a workload."""
    return sum(other.weight for other in train if are_neighbours(item.workload.axes, other.workload.axes))


def _heaviest_keys(train: list[Placed], slots: int) -> list[Placed]:
    """Key by key, heaviest key first: a workload decides little unless its whole key is timed."""
    keys: defaultdict[str, list[Placed]] = defaultdict(list)
    for item in train:
        keys[class_key(item.workload.axes)].append(item)
    ranked = sorted(keys.items(), key=lambda pair: (-sum(item.weight for item in pair[1]), pair[0]))
    first = [items[0] for _, items in ranked]
    others = [item for _, items in ranked for item in items[1:]]
    return [*first, *others][:slots]


def _fault(entrant: Contestant, contest: Contest, verdicts: Mapping[Pair, Evaluation]) -> str | None:
    """Why an entrant is not eligible; None if it passed on every workload that it applies to."""
    digest, bad, seen = entrant.solution_digest, [], 0
    for item in contest.placed:
        if not applies(entrant, contest.definition, item.workload):
            continue
        verdict = verdicts.get((digest, item.workload.digest))
        seen += 1
        if verdict is None:
            bad.append((1, f"not evaluated on a {item.split} workload"))
        elif verdict.status is not Status.PASSED:
            rank = 0 if verdict.status is Status.CHEATED else 1
            rule = f" ({verdict.rule})" if verdict.rule else ""
            bad.append((rank, f"{verdict.status.value}{rule} on a {item.split} workload, axes {item.workload.axes}"))
    if not seen:
        return "applies to no workload"
    return min(bad)[1] if bad else None


def _choose(
    contest: Contest,
    entrants: Sequence[Contestant],
    faults: Mapping[Digest, str | None],
    times: Times,
    rules: Rules,
) -> tuple[tuple[Contestant, ...], dict[Digest, str]]:
    assert contest.incumbent is not None
    rivals = [item for item in entrants if item.role != "incumbent"]
    able = [item for item in rivals if faults[item.solution_digest] is None]
    ratios = {item.solution_digest: best_ratio(contest, item.solution_digest, times) for item in able}
    near = [item.solution_digest for item in able if ratios[item.solution_digest] >= rules.screen_ratio_min]
    chosen = cover(contest, near, times, rules.finalist_limit)
    notes = {one.solution_digest: "declared incumbent, slower overall" for one in entrants if one.role == "incumbent"}
    notes |= {digest: fault for digest, fault in faults.items() if fault}
    notes |= {digest: f"screened out: {ratio:.2f}x the incumbent's speed at best" for digest, ratio in ratios.items()}
    notes |= {digest: f"{ratios[digest]:.2f}x at best, but others cover its keys better" for digest in near}
    notes |= {digest: f"finalist: {ratios[digest]:.2f}x at best in the screen" for digest in chosen}
    notes[contest.incumbent.solution_digest] = "incumbent"
    by_digest = {item.solution_digest: item for item in able}
    picked = (by_digest[digest].model_copy(update={"role": "candidate"}) for digest in chosen)
    return tuple(picked), notes


def _blocked(contest: Contest, chosen: Sequence[Contestant], rules: Rules) -> str | None:
    families = {item.family for item in contest.placed if item.split != "stress"}
    if not any(item.split == "holdout" for item in contest.placed) or len(families) < rules.families_min:
        return NO_HOLDOUT.format(rules.families_min)
    if contest.placed and all(item.workload.digest in contest.toothless for item in contest.placed):
        return "toothless: every workload of this definition would let a plainly wrong output pass"
    return None if chosen else "no candidate was fast enough in the screen to be confirmed"

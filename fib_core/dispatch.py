"""Room 6, dispatch: Decisions in, a DispatchIndex out: every entry with its evidence, every default the incumbent.

Guards are closed boxes learnt from measured points; two of one definition never overlap. Knows no store and no server.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from fib_core.errors import ContractError
from fib_core.lookup import check
from schemas.base import Digest
from schemas.decision import Decision, Profile
from schemas.definition import Definition
from schemas.index import DispatchIndex, IndexedDefinition, IndexedSolution, IndexEntry
from schemas.snapshot import Snapshot
from schemas.solution import Solution

DEFAULT_REASON = "no measured box covers the call: call the caller's own function"


def object_key(solution_digest: Digest) -> str:
    """Where a solution lies in the store."""
    return f"solutions/{solution_digest.removeprefix('sha256:')}.json"


def build(
    snapshot: Snapshot,
    decisions: Sequence[Decision],
    solutions: Mapping[Digest, Solution],
    profile: Profile,
    device_class: str,
    library_versions: Mapping[str, str],
) -> DispatchIndex:
    """One entry per decision, one block per definition of the snapshot; raises ContractError if guards overlap."""
    by_definition: defaultdict[Digest, list[Decision]] = defaultdict(list)
    for decision in decisions:
        by_definition[decision.definition_digest].append(decision)
    chosen = sorted({item.solution_digest for item in decisions if _promoted(item) and item.solution_digest})
    index = DispatchIndex(
        snapshot_digest=snapshot.digest,
        profile=profile,
        device_class=device_class,
        library_versions=dict(sorted(library_versions.items())),
        definitions=tuple(_definition(item, by_definition[item.digest], solutions) for item in snapshot.definitions),
        solutions=tuple(_solution(digest, solutions[digest]) for digest in chosen),
    )
    check(index)
    return index


def _promoted(decision: Decision) -> bool:
    return decision.verdict == "promoted"


def _definition(
    definition: Definition, decisions: Iterable[Decision], solutions: Mapping[Digest, Solution]
) -> IndexedDefinition:
    ordered = sorted(decisions, key=lambda item: sorted(item.box.axes.items()))
    incumbent = next((item.incumbent_digest for item in ordered if item.incumbent_digest), None)
    return IndexedDefinition(
        name=definition.name,
        op_type=definition.op_type,
        definition_digest=definition.digest,
        incumbent_digest=incumbent,
        incumbent_name=solutions[incumbent].name if incumbent and incumbent in solutions else None,
        default_reason=DEFAULT_REASON if ordered else "nothing of this definition was measured",
        entries=tuple(_entry(item) for item in ordered),
    )


def _entry(decision: Decision) -> IndexEntry:
    promoted = _promoted(decision)
    estimate = next((item for item in decision.estimates if item.solution_digest == decision.solution_digest), None)
    if promoted and estimate is None:
        raise ContractError(f"{decision.definition} {decision.key}: promoted without an estimate")
    return IndexEntry(
        key=decision.key,
        box=decision.box,
        solution_digest=decision.solution_digest if promoted else None,
        ratio=estimate.ratio if estimate else None,
        standard_error=estimate.standard_error if estimate else None,
        interval=estimate.interval if estimate else None,
        rounds=decision.rounds,
        finalist_count=len(decision.finalists),
        reason=decision.reason,
        decision_digest=decision.digest,
    )


def _solution(digest: Digest, solution: Solution) -> IndexedSolution:
    return IndexedSolution(
        name=solution.name, author=solution.author, solution_digest=digest, object_key=object_key(digest)
    )

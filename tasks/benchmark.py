"""From a dataset folder to the contestants: which solutions belong to which definition, and who is the incumbent.

Pure selection over records that were read. A definition without any solution is entered with its own reference, so that
a dataset of workloads alone can be judged too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from schemas.definition import Definition
from schemas.snapshot import Snapshot
from schemas.solution import BuildSpec, Solution, SourceFile
from tasks.asked import require_known
from tasks.collect import Gathered
from tasks.dedup import Deduplicated

REFERENCE_AUTHOR = "reference"


def chosen_definitions(gathered: Gathered, names: Sequence[str] | None) -> dict[str, Definition]:
    """The definitions to run: all of the chosen scale, or those named; raises ContractError for an unknown name."""
    if not names:
        return gathered.definitions
    require_known(names, gathered.dataset.definitions, str(gathered.dataset.root))
    return {name: gathered.dataset.definitions[name] for name in names}


def solutions_for(gathered: Gathered, chosen: Mapping[str, Definition]) -> dict[str, list[Solution]]:
    """Solutions per definition name; the reference itself where there is none."""
    found: dict[str, list[Solution]] = {name: [] for name in chosen}
    for solution in gathered.dataset.solutions.values():
        if solution.definition in found:
            found[solution.definition].append(solution)
    return {name: items or [reference_solution(chosen[name])] for name, items in found.items()}


def reference_solution(definition: Definition) -> Solution:
    """The definition's reference as a value-returning Python solution."""
    return Solution(
        name=f"{definition.name}__reference",
        definition=definition.name,
        author=REFERENCE_AUTHOR,
        spec=BuildSpec(
            language="python",
            target_hardware=("cpu",),
            entry_point="main.py::run",
            destination_passing_style=False,
        ),
        sources=(SourceFile(path="main.py", content=definition.reference),),
    )


def incumbents_of(
    gathered: Gathered, chosen: Mapping[str, Definition], solutions: Mapping[str, Iterable[Solution]]
) -> dict[str, tuple[str, ...]]:
    """Definition digest -> digests of the declared incumbents, in declared order."""
    declared: dict[str, tuple[str, ...]] = {}
    for name, definition in chosen.items():
        by_name = {item.name: item for item in solutions[name]}
        names = [label for label in gathered.dataset.incumbents.get(name, ()) if label in by_name]
        if names:
            declared[definition.digest] = tuple(by_name[label].digest_for(definition.digest) for label in names)
    return declared


def has_workloads(snapshot: Snapshot, definition: Definition) -> bool:
    """True if anything of this definition can be measured."""
    return any(placed.workload.definition_digest == definition.digest for placed in snapshot.workloads)


def weights_of(few: Iterable[Deduplicated]) -> Literal["call_counts", "none"]:
    """Weights are call shares only if every definition came from a call log."""
    listed = [each for each in few if each.workloads]
    return "call_counts" if listed and all(each.calls for each in listed) else "none"

"""What a channel promises: the promoted keys of its current index, each with the contest that decided it.

In: a house, a dataset. Out: one contest per definition, ready for rounds. The index names digests; the sources of
incumbents come from the dataset that the index was made from.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from fib_core import ledger
from fib_core.decision.contest import Contest, placed_of
from fib_core.errors import ContractError
from fib_core.index.evidence import winning_estimate
from fib_core.publication import history
from fib_core.publish import read_index
from fib_core.workloads.axisclass import class_key
from schemas.base import Digest
from schemas.decision import Decision
from schemas.definition import Definition
from schemas.index import DispatchIndex
from schemas.remeasurement import KeyAgain
from schemas.snapshot import Placed, Snapshot
from schemas.solution import Solution
from schemas.visit import Contestant
from tasks.asked import require_known
from tasks.wiring import House

Solutions = Mapping[Digest, Solution]


@dataclass(frozen=True)
class Promised:
    """One definition's promoted keys. ``contest`` has their winners as finalists and times their workloads only."""

    contest: Contest
    decisions: tuple[Decision, ...]
    rounds: int

    def items_of(self, key: str) -> list[Placed]:
        """The timed workloads of one key."""
        return [item for item in self.contest.timed if class_key(item.workload.axes) == key]


def current_index(house: House) -> DispatchIndex:
    """What the channel serves; raises ObjectMissing where there is none."""
    return read_index(house.store, history.current(house.store, house.settings.channel).index_digest)


def promoted_decisions(house: House, index: DispatchIndex, names: Collection[str] | None) -> list[Decision]:
    """Decisions behind the entries, of the named definitions; raises ContractError for a name that is not there."""
    require_known(names or (), [block.name for block in index.definitions], f"the index {index.digest}")
    entries = [
        entry
        for block in index.definitions
        if not names or block.name in names
        for entry in block.entries
        if entry.solution_digest is not None
    ]
    digests = {entry.decision_digest for entry in entries}
    digests |= {item.decision_digest for entry in entries for item in entry.evidence}
    return [ledger.load(house.store, "decisions", digest, Decision) for digest in sorted(digests)]


def promised(house: House, decisions: Sequence[Decision], solutions: Solutions, campaign: int) -> list[Promised]:
    """One contest per (snapshot, definition); raises ContractError if the dataset lacks a solution."""
    groups: defaultdict[tuple[str, str], list[Decision]] = defaultdict(list)
    for item in decisions:
        groups[item.definition, item.snapshot_digest].append(item)
    return [_promised(house, items, solutions, campaign) for _, items in sorted(groups.items())]


def _promised(house: House, decisions: list[Decision], solutions: Solutions, campaign: int) -> Promised:
    first = decisions[0]
    snapshot = ledger.load(house.store, "snapshots", first.snapshot_digest, Snapshot)
    definition = next(item for item in snapshot.definitions if item.digest == first.definition_digest)
    wanted = {digest for item in decisions for digest in item.workloads}
    keys = {item.key for item in decisions}
    placed = placed_of(snapshot, definition)
    timed = [item for item in placed if item.split == "train" and item.workload.digest in wanted]
    entered = _Entered(definition, solutions)
    contest = Contest(
        snapshot_digest=snapshot.digest, definition=definition, placed=placed,
        timed=tuple(item for item in timed if class_key(item.workload.axes) in keys),
        incumbent=entered.by(first.incumbent_digest, "the incumbent"),
        finalists=tuple(entered.by(digest, "a winner") for digest in sorted({_winner(item) for item in decisions})),
        blocked=None,
        forms=tuple(entered.by(digest, "an incumbent") for digest in sorted({d for i in decisions for d in i.forms})),
        campaign=campaign,
    )  # fmt: skip
    return Promised(contest, tuple(decisions), max(item.rounds for item in decisions))


@dataclass(frozen=True)
class _Entered:
    definition: Definition
    solutions: Solutions

    def by(self, digest: Digest | None, what: str) -> Contestant:
        solution = self.solutions.get(digest or "")
        if solution is None or digest is None:
            raise ContractError(
                f"{self.definition.name}: the dataset has no solution {digest}, {what} of the published decision; give "
                "--dataset with the data that the index was made from"
            )
        role = "candidate" if what == "a winner" else "incumbent"
        return Contestant.model_validate({"role": role, "solution": solution, "solution_digest": digest})


def _winner(decision: Decision) -> Digest:
    if decision.solution_digest is None:
        raise ContractError(f"{decision.definition} {decision.key}: the index serves a decision that promoted nobody")
    return decision.solution_digest


def as_published(decision: Decision, solutions: Solutions) -> KeyAgain:
    """The published side of the comparison."""
    estimate = winning_estimate(decision)
    if estimate is None:
        raise ContractError(f"{decision.definition} {decision.key}: promoted without an estimate")
    return KeyAgain(
        definition=decision.definition, definition_digest=decision.definition_digest, key=decision.key,
        solution=solutions[estimate.solution_digest].name, solution_digest=estimate.solution_digest,
        decision_digest=decision.digest, published_ratio=estimate.ratio, published_error=estimate.standard_error,
        rounds=0,
    )  # fmt: skip

"""Room 6, dispatch: Decisions in, a DispatchIndex out: every entry with its evidence, every default the incumbent.

Guards are closed boxes learnt from measured points; two of one definition never overlap. Only promotions become
entries: a key that kept the incumbent is what the default says already, so it is listed apart with its reason. Knows
no store and no server.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fib_core.errors import ContractError
from fib_core.index.boxes import LearntBox, learn
from fib_core.index.evidence import Measured, evidence_of, winning_estimate
from fib_core.index.guard import covers, dtype_class, length_guard
from fib_core.index.lookup import all_corners, check, corners, overlap
from fib_core.workloads.constraints import violated
from schemas.base import Digest
from schemas.decision import Decision, Estimate, KeyBox, Profile
from schemas.definition import Definition
from schemas.index import DispatchIndex, IndexedDefinition, IndexedSolution, IndexEntry, KeptKey, KeyEvidence
from schemas.snapshot import Placed, Snapshot
from schemas.solution import Solution

DEFAULT_REASON = "no measured box covers the call: call the caller's own function"
UNMEASURED_REASON = "nothing of this definition was measured"


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
    measured: Mapping[Digest, Measured] = {},
) -> DispatchIndex:
    """One block per definition of the snapshot; ``measured`` maps decision digests to how they were measured.

    Raises ContractError for two decisions about one key, guards that overlap, a promotion without its evidence.
    """
    by_definition: defaultdict[Digest, list[Decision]] = defaultdict(list)
    for decision in decisions:
        by_definition[decision.definition_digest].append(decision)
    blocks = tuple(
        _Block.of(item, by_definition[item.digest], snapshot, solutions, measured).indexed()
        for item in snapshot.definitions
    )
    chosen = sorted({entry.solution_digest for block in blocks for entry in block.entries if entry.solution_digest})
    index = DispatchIndex(
        snapshot_digest=snapshot.digest,
        profile=profile,
        device_class=device_class,
        library_versions=dict(sorted(library_versions.items())),
        definitions=blocks,
        solutions=tuple(_solution(digest, solutions[digest]) for digest in chosen),
    )
    check(index)
    return index


@dataclass(frozen=True)
class _Block:
    """One definition with everything that its entries are made of."""

    definition: Definition
    decisions: Sequence[Decision]
    placed: Sequence[Placed]
    solutions: Mapping[Digest, Solution]
    measured: Mapping[Digest, Measured]

    @classmethod
    def of(
        cls, definition: Definition, decisions: Iterable[Decision], snapshot: Snapshot,
        solutions: Mapping[Digest, Solution], measured: Mapping[Digest, Measured],
    ) -> "_Block":  # fmt: skip
        ordered = sorted(decisions, key=lambda item: sorted(item.box.axes.items()))
        placed = [item for item in snapshot.workloads if item.workload.definition_digest == definition.digest]
        return cls(definition, ordered, placed, solutions, measured)

    def indexed(self) -> IndexedDefinition:
        """Entries for promotions, the rest listed as kept; every decision is in exactly one of the two."""
        kept = [item for item in self.decisions if item.verdict != "promoted"]
        boxes = self._boxes([item.box for item in kept])
        self._check_complete(boxes)
        incumbent = next((item.incumbent_digest for item in self.decisions if item.incumbent_digest), None)
        return IndexedDefinition(
            name=self.definition.name,
            op_type=self.definition.op_type,
            definition_digest=self.definition.digest,
            incumbent_digest=incumbent,
            incumbent_name=self.solutions[incumbent].name if incumbent and incumbent in self.solutions else None,
            default_reason=DEFAULT_REASON if self.decisions else UNMEASURED_REASON,
            entries=tuple(self._entry(item) for item in boxes),
            kept=tuple(self._kept(item) for item in kept),
            dropped_count=len(kept),
        )

    def _boxes(self, kept: Sequence[KeyBox]) -> list[LearntBox]:
        """What was learnt; a box that claims too much is cut down to the measured points in it."""
        found: list[LearntBox] = []
        for learnt in learn(self.decisions, self.placed, self.definition):
            box = self._box(learnt)
            sound = self._is_usable(learnt, box) and not any(overlap(box, other) for other in kept)
            found += [learnt] if sound else self._points(learnt)
        return sorted(found, key=lambda item: sorted(item.axes.items()))

    def _is_usable(self, learnt: LearntBox, box: KeyBox) -> bool:
        """True if the box has a legal corner, and its winner declares support for the smallest and the largest call."""
        supports = self.solutions[learnt.decisions[0].solution_digest or ""].spec.supports
        ends = [corner for corner in corners(box) if self._is_legal(corner)]
        supported = all(violated(supports, self._sizes(end), undecidable=True) is None for end in ends)
        return supported and any(self._is_legal(corner) for corner in all_corners(box))

    def _is_legal(self, axes: Mapping[str, int]) -> bool:
        return violated(self.definition.constraints, self._sizes(axes)) is None

    def _sizes(self, axes: Mapping[str, int]) -> dict[str, int]:
        return self.definition.const_axes | dict(axes)

    def _points(self, learnt: LearntBox) -> list[LearntBox]:
        owner = {digest: decision for decision in learnt.decisions for digest in decision.workloads}
        box = self._box(learnt)
        inside = {
            tuple(sorted(item.workload.axes.items())): owner[item.workload.digest]
            for item in self.placed
            if item.split == "train" and item.workload.digest in owner and box.covers(item.workload.axes)
        }
        return [LearntBox({name: (size, size) for name, size in point}, (one,)) for point, one in inside.items()]

    def _box(self, learnt: LearntBox) -> KeyBox:
        guard = {"axes": dict(sorted(learnt.axes.items())), "dtype": dtype_class(self.definition)}
        return learnt.decisions[0].box.model_copy(update=guard)

    def _guarded(self, learnt: LearntBox) -> KeyBox:
        """The box with the mean lengths that were measured in it, where its own corners have them."""
        box = self._box(learnt)
        timed = {digest for decision in learnt.decisions for digest in decision.workloads}
        points = [item.workload.axes for item in self.placed if item.workload.digest in timed]
        guarded = box.model_copy(update={"lengths": length_guard(point for point in points if box.covers(point))})
        return guarded if all(covers(guarded, corner) for corner in corners(box)) else box

    def _entry(self, learnt: LearntBox) -> IndexEntry:
        weakest = min(learnt.decisions, key=lambda item: (_estimate(item).ratio, item.key))
        estimate = _estimate(weakest)
        return IndexEntry(
            key=weakest.key,
            box=self._guarded(learnt),
            solution_digest=weakest.solution_digest,
            ratio=estimate.ratio,
            standard_error=estimate.standard_error,
            interval=estimate.interval,
            rounds=weakest.rounds,
            finalist_count=len(weakest.finalists),
            reason=weakest.reason,
            decision_digest=weakest.digest,
            evidence=tuple(self._evidence(item) for item in learnt.decisions),
        )

    def _kept(self, decision: Decision) -> KeptKey:
        return KeptKey.model_validate(
            {
                "key": decision.key,
                "box": decision.box.model_copy(update={"dtype": dtype_class(self.definition)}),
                "verdict": decision.verdict,
                "reason": decision.reason,
                "decision_digest": decision.digest,
                "evidence": self._evidence(decision) if decision.digest in self.measured else None,
            }
        )

    def _evidence(self, decision: Decision) -> KeyEvidence:
        measured = self.measured.get(decision.digest)
        if measured is None:
            place = f"{decision.definition} {decision.key}"
            raise ContractError(f"{place}: promoted, but nothing is known of how it was measured")
        timed = [item.workload for item in self.placed if item.workload.digest in decision.workloads]
        return evidence_of(decision, measured, timed)

    def _check_complete(self, boxes: Sequence[LearntBox]) -> None:
        """No promotion is lost on the way from decisions to entries."""
        served = {decision.key for box in boxes for decision in box.decisions}
        lost = [item.key for item in self.decisions if item.verdict == "promoted" and item.key not in served]
        if lost:
            raise ContractError(f"{self.definition.name} {lost[0]}: promoted, but no box covers any of its points")


def _estimate(decision: Decision) -> Estimate:
    estimate = winning_estimate(decision)
    if estimate is None:
        raise ContractError(f"{decision.definition} {decision.key}: promoted without an estimate")
    return estimate


def _solution(digest: Digest, solution: Solution) -> IndexedSolution:
    return IndexedSolution(
        name=solution.name, author=solution.author, solution_digest=digest, object_key=object_key(digest)
    )

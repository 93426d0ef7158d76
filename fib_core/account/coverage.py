"""How much of the logged traffic an index serves, on all calls and on the held-out families alone.

In: an index, its snapshot, the call records. Out: counts per definition. A call is *inside* if it lies in a measured
box, promoted or kept, and *served* if a promoted solution would run. Knows nothing of times or of how boxes are learnt.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fib_core.index.lookup import find, find_kept
from fib_core.workloads.constraints import violated
from fib_core.workloads.families import family_name, hashed_side, structure_class
from schemas.base import Digest
from schemas.decision import KeyBox
from schemas.definition import Definition
from schemas.index import DispatchIndex, IndexedDefinition
from schemas.snapshot import Snapshot
from schemas.solution import Solution
from schemas.trace import TraceRecord


class Coverage(NamedTuple):
    """One definition: logged calls, those inside a measured box, those served; the same for held-out families.

    ``boxes`` counts the boxes of promotions, ``point_boxes`` those of them that hold a single axis point.
    """

    name: str
    calls: int
    inside: int
    served: int
    holdout_calls: int
    holdout_inside: int
    holdout_served: int
    boxes: int
    point_boxes: int

    @property
    def inside_share(self) -> float | None:
        """Share of all logged calls inside a measured box; None without calls."""
        return _share(self.inside, self.calls)

    @property
    def served_share(self) -> float | None:
        """Share of all logged calls served by a promotion; None without calls."""
        return _share(self.served, self.calls)

    @property
    def holdout_inside_share(self) -> float | None:
        """As ``inside_share``, of the calls of held-out families."""
        return _share(self.holdout_inside, self.holdout_calls)

    @property
    def holdout_served_share(self) -> float | None:
        """As ``served_share``, of the calls of held-out families."""
        return _share(self.holdout_served, self.holdout_calls)


class _Kind(NamedTuple):
    """Calls that an index cannot tell apart, and their family."""

    axes: tuple[tuple[str, int], ...]
    family: str
    contiguous: bool


def measure(
    index: DispatchIndex,
    snapshot: Snapshot,
    records: Iterable[TraceRecord],
    solutions: Mapping[Digest, Solution] | None = None,
) -> list[Coverage]:
    """One row per indexed definition that has calls, by name; calls of other definitions are no part of it.

    With ``solutions`` a call outside the declared support of its solution is not served, as the reader has it. Families
    that the snapshot does not hold count on the side that its split key gives them.
    """
    kinds = _kinds(records)
    contracts = {item.digest: item for item in snapshot.definitions}
    rows = [
        _measured(index, block, contracts[block.definition_digest], snapshot, kinds[block.name], solutions or {})
        for block in index.definitions
        if kinds.get(block.name) and block.definition_digest in contracts
    ]
    return sorted(rows)


def _kinds(records: Iterable[TraceRecord]) -> dict[str, Counter[_Kind]]:
    kinds: defaultdict[str, Counter[_Kind]] = defaultdict(Counter)
    listed = list(records)
    # Equal lines of a log share one frozen record; each is classified once.
    counts = Counter(map(id, listed))
    for record in {id(record): record for record in listed}.values():
        family = family_name(record.axes, structure_class(record.structure))
        contiguous = all(layout.contiguous for layout in record.layout.values())
        kinds[record.definition][_Kind(tuple(sorted(record.axes.items())), family, contiguous)] += counts[id(record)]
    return kinds


def _measured(
    index: DispatchIndex,
    block: IndexedDefinition,
    definition: Definition,
    snapshot: Snapshot,
    kinds: Mapping[_Kind, int],
    solutions: Mapping[Digest, Solution],
) -> Coverage:
    known = {
        item.family: item.split
        for item in snapshot.workloads
        if item.workload.definition_digest == definition.digest and item.split != "stress"
    }
    counts: Counter[str] = Counter()
    for kind, count in kinds.items():
        side = known.get(kind.family) or hashed_side(definition.digest, kind.family, snapshot.split_key)
        inside, served = _place(index, block, kind, definition, solutions)
        prefixes = ("", "holdout_") if side == "holdout" else ("",)
        for prefix in prefixes:
            counts[f"{prefix}calls"] += count
            counts[f"{prefix}inside"] += count * inside
            counts[f"{prefix}served"] += count * served
    boxes = [entry.box for entry in block.entries if entry.solution_digest]
    return Coverage(
        name=block.name,
        calls=counts["calls"],
        inside=counts["inside"],
        served=counts["served"],
        holdout_calls=counts["holdout_calls"],
        holdout_inside=counts["holdout_inside"],
        holdout_served=counts["holdout_served"],
        boxes=len(boxes),
        point_boxes=sum(map(_is_point, boxes)),
    )


def _place(
    index: DispatchIndex,
    block: IndexedDefinition,
    kind: _Kind,
    definition: Definition,
    solutions: Mapping[Digest, Solution],
) -> tuple[bool, bool]:
    """(inside a measured box, served by a promotion). Inputs that are not contiguous are never inside."""
    if not kind.contiguous:
        return False, False
    axes = dict(kind.axes)
    entry = find(index, block.definition_digest, axes)
    if entry is None:
        return find_kept(index, block.definition_digest, axes) is not None, False
    chosen = solutions.get(entry.solution_digest or "")
    sizes = definition.const_axes | axes
    able = chosen is None or violated(chosen.spec.supports, sizes, undecidable=True) is None
    return True, entry.solution_digest is not None and able


def _is_point(box: KeyBox) -> bool:
    return all(low == high for low, high in box.axes.values())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None

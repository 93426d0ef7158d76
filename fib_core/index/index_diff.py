"""What changed between two indexes. In: two DispatchIndex records. Out: one row per entry or kept key, and counts.

Pure. A row is paired by definition name, key and, where a key has several boxes, by box. It falls in exactly one of
:data:`CHANGES`: added + the paired are all of the new index, removed + the paired all of the old one. What else changed
is named beside. Stale is no change: a row whose evidence does not hold under the new index's own libraries, definitions
and policy.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from fib_core.index.staleness import POLICY_VERSION, Present, entry_reasons
from schemas.index import DispatchIndex, IndexedDefinition, IndexEntry, KeptKey

Change = Literal["added", "removed", "winner", "guard", "ratio", "evidence", "unchanged"]
CHANGES: tuple[Change, ...] = ("added", "removed", "winner", "guard", "ratio", "evidence", "unchanged")
INCUMBENT = "incumbent"
Place = tuple[str, str]


class Side(NamedTuple):
    """What one index says of a key; ``winner`` is a solution's name, or ``incumbent``."""

    winner: str
    solution_digest: str | None
    guard: dict[str, Any]
    ratio: float | None
    interval: tuple[float, float] | None
    decision_digest: str
    reason: str
    stale: tuple[str, ...]


class Row(NamedTuple):
    """One key in both, or in one of the two; ``also`` names changes beside the first."""

    definition: str
    key: str
    change: Change
    also: tuple[Change, ...]
    old: Side | None
    new: Side | None

    @property
    def stale(self) -> tuple[str, ...]:
        """Why the evidence that is newest here does not hold any more; empty if it does."""
        side = self.new or self.old
        return side.stale if side else ()

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        old, new = (side._asdict() if side else None for side in (self.old, self.new))
        return self._asdict() | {"old": old, "new": new, "stale": self.stale}


def diff(old: DispatchIndex, new: DispatchIndex) -> list[Row]:
    """All rows, by definition and key."""
    present = Present(
        libraries=new.library_versions,
        policy_version=POLICY_VERSION,
        definitions=frozenset(item.definition_digest for item in new.definitions),
    )
    before, after = _sides(old, present), _sides(new, present)
    return [
        _row(place, one, other)
        for place in sorted(before.keys() | after.keys())
        for one, other in _pairs(before.get(place, []), after.get(place, []))
    ]


def counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many rows each index has, how many fall under each change, and how many are stale."""
    found = Counter(row.change for row in rows)
    sizes = {"old": len(rows) - found["added"], "new": len(rows) - found["removed"]}
    return sizes | {name: found[name] for name in CHANGES} | {"stale": sum(bool(row.stale) for row in rows)}


def left_out(old: DispatchIndex, new: DispatchIndex) -> dict[str, int]:
    """Definitions that ``old`` serves and ``new`` does not hold at all -> entries of theirs that go."""
    held = {item.name for item in new.definitions}
    lost = {block.name: [item for item in block.entries if item.solution_digest] for block in old.definitions}
    return {name: len(entries) for name, entries in sorted(lost.items()) if entries and name not in held}


def back_again(gone: DispatchIndex, now: DispatchIndex, new: DispatchIndex) -> list[str]:
    """What ``gone`` served, ``now`` does not and ``new`` does again, each as "SOLUTION of DEFINITION"."""
    return sorted(_served(gone) & _served(new) - _served(now))


def _served(index: DispatchIndex) -> set[str]:
    names = {item.solution_digest: item.name for item in index.solutions}
    pairs = {(block.name, entry.solution_digest) for block in index.definitions for entry in block.entries}
    return {f"{names.get(digest, digest)} of {name}" for name, digest in pairs if digest is not None}


def _sides(index: DispatchIndex, present: Present) -> dict[Place, list[Side]]:
    names = {item.solution_digest: item.name for item in index.solutions}
    found: defaultdict[Place, list[Side]] = defaultdict(list)
    for block in index.definitions:
        for item in _items(block):
            found[block.name, item.key].append(_side(item, names, index, present))
    return found


def _items(block: IndexedDefinition) -> Iterator[IndexEntry | KeptKey]:
    yield from block.entries
    yield from block.kept


def _side(item: IndexEntry | KeptKey, names: dict[str, str], index: DispatchIndex, present: Present) -> Side:
    entry = item if isinstance(item, IndexEntry) else None
    chosen = item.solution_digest
    stale = entry_reasons(entry, present, index.library_versions) if entry else ()
    return Side(
        winner=names.get(chosen, chosen) if chosen else INCUMBENT,
        solution_digest=chosen,
        guard=item.box.model_dump(mode="json"),
        ratio=entry.ratio if entry else None,
        interval=entry.interval if entry else None,
        decision_digest=item.decision_digest,
        reason=item.reason,
        stale=tuple(f"{reason.cause}: {reason.detail}" for reason in stale),
    )


def _pairs(before: list[Side], after: list[Side]) -> Iterator[tuple[Side | None, Side | None]]:
    """Equal boxes first, then what is left in order; the rest stands alone."""
    left = list(after)
    alone = []
    for one in before:
        match = next((other for other in left if other.guard == one.guard), None)
        if match is None:
            alone.append(one)
        else:
            left.remove(match)
            yield one, match
    shared = min(len(alone), len(left))
    yield from zip(alone[:shared], left[:shared], strict=True)
    yield from ((one, None) for one in alone[shared:])
    yield from ((None, other) for other in left[shared:])


def _row(place: Place, old: Side | None, new: Side | None) -> Row:
    changes = _changes(old, new)
    return Row(*place, changes[0], tuple(changes[1:]), old, new)


def _changes(old: Side | None, new: Side | None) -> list[Change]:
    if old is None or new is None:
        return ["added" if old is None else "removed"]
    differs: dict[Change, bool] = {
        "winner": old.solution_digest != new.solution_digest,
        "guard": old.guard != new.guard,
        "ratio": (old.ratio, old.interval) != (new.ratio, new.interval),
        "evidence": (old.decision_digest, old.reason) != (new.decision_digest, new.reason),
    }
    return [name for name, is_other in differs.items() if is_other] or ["unchanged"]

"""Which index entry serves a call. The one lookup for builder, publisher and serving process; no heavy imports.

In: a DispatchIndex, a definition digest and the call's axes. Out: an entry or None; never the nearest one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice, product

from fib_core.errors import ContractError
from fib_core.index.guard import covers
from schemas.base import Digest
from schemas.decision import KeyBox
from schemas.index import DispatchIndex, IndexedDefinition, IndexEntry, KeptKey

CORNERS_MAX = 256
"""Corners of one box that are asked; a box of eight axes has as many."""


def definition_in(index: DispatchIndex, definition_digest: Digest) -> IndexedDefinition | None:
    """The indexed definition of this digest."""
    return next((item for item in index.definitions if item.definition_digest == definition_digest), None)


def find(
    index: DispatchIndex, definition_digest: Digest, axes: Mapping[str, int], device_class: str | None = None
) -> IndexEntry | None:
    """The entry whose box covers ``axes`` (var axes bound), on ``device_class`` if given; None = the default serves."""
    if device_class is not None and device_class != index.device_class:
        return None
    found = definition_in(index, definition_digest)
    return next((entry for entry in found.entries if covers(entry.box, axes)), None) if found else None


def find_kept(
    index: DispatchIndex, definition_digest: Digest, axes: Mapping[str, int], device_class: str | None = None
) -> KeptKey | None:
    """The decided key that keeps the incumbent for ``axes``: it explains the default, it does not replace it."""
    if device_class is not None and device_class != index.device_class:
        return None
    found = definition_in(index, definition_digest)
    return next((kept for kept in found.kept if covers(kept.box, axes)), None) if found else None


def check(index: DispatchIndex) -> None:
    """The publish test: counts add up, boxes are disjoint, entries reachable, gaps the default's, solutions listed."""
    listed = {item.solution_digest for item in index.solutions}
    for definition in index.definitions:
        _check_counts(definition)
        _check_disjoint(definition)
        for entry in definition.entries:
            if entry.solution_digest is not None and entry.solution_digest not in listed:
                raise ContractError(f"{definition.name} {entry.key}: its solution is not listed in the index")
            for corner in corners(entry.box):
                if find(index, definition.definition_digest, corner, entry.box.device_class) != entry:
                    raise ContractError(f"{definition.name} {entry.key}: a call at {corner} does not reach its entry")


def overlap(one: KeyBox, other: KeyBox) -> bool:
    """True if some call lies in both boxes."""
    return all(
        one.axes[name][0] <= other.axes[name][1] and other.axes[name][0] <= one.axes[name][1]
        for name in one.axes.keys() & other.axes.keys()
    )


def corners(box: KeyBox) -> list[dict[str, int]]:
    """The smallest and the largest call that the box covers."""
    return [{name: ends[side] for name, ends in box.axes.items()} for side in (0, 1)]


def all_corners(box: KeyBox) -> list[dict[str, int]]:
    """The smallest and the largest call, then the mixed ones, which may break a constraint that ties axes together."""
    names = list(box.axes)
    every = product(*(sorted(set(box.axes[name])) for name in names))
    mixed = (dict(zip(names, ends, strict=True)) for ends in islice(every, CORNERS_MAX))
    return [*corners(box), *(call for call in mixed if call not in corners(box))]


def just_outside(box: KeyBox) -> Iterator[dict[str, int]]:
    """One step beyond every edge, from the smallest and the largest call of the box."""
    for corner in corners(box):
        for name, (low, high) in box.axes.items():
            yield corner | {name: high + 1}
            if low > 0:
                yield corner | {name: low - 1}


def _check_counts(definition: IndexedDefinition) -> None:
    kept = Counter(item.key for item in definition.kept)
    twice = [key for key, count in kept.items() if count > 1] + [key for key in definition.promoted_keys if key in kept]
    if twice:
        raise ContractError(f"{definition.name} {twice[0]}: two verdicts on one key")
    if definition.dropped_count != len(definition.kept):
        raise ContractError(
            f"{definition.name}: {definition.dropped_count} entries dropped, but {len(definition.kept)} keys kept"
        )


def _check_disjoint(definition: IndexedDefinition) -> None:
    guarded: list[IndexEntry | KeptKey] = [*definition.entries, *definition.kept]
    for place, entry in enumerate(definition.entries):
        clash = next((item for item in guarded[place + 1 :] if overlap(entry.box, item.box)), None)
        if clash is not None:
            raise ContractError(f"{definition.name}: the boxes of {entry.key} and {clash.key} overlap")

"""Which index entry serves a call. The one lookup for builder, publisher and serving process; no heavy imports.

In: a DispatchIndex, a definition digest and the call's axes. Out: an entry or None; never the nearest one.
"""

from collections.abc import Mapping

from fib_core.errors import ContractError
from schemas.base import Digest
from schemas.decision import KeyBox
from schemas.index import DispatchIndex, IndexedDefinition, IndexEntry


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
    bound = dict(axes)
    return next((entry for entry in found.entries if entry.box.covers(bound)), None) if found else None


def check(index: DispatchIndex) -> None:
    """The publish test: boxes disjoint, every entry reachable by the real lookup, every solution listed."""
    listed = {item.solution_digest for item in index.solutions}
    for definition in index.definitions:
        _check_disjoint(definition)
        for entry in definition.entries:
            if entry.solution_digest is not None and entry.solution_digest not in listed:
                raise ContractError(f"{definition.name} {entry.key}: its solution is not listed in the index")
            for corner in _corners(entry.box):
                if find(index, definition.definition_digest, corner, entry.box.device_class) != entry:
                    raise ContractError(f"{definition.name} {entry.key}: a call at {corner} does not reach its entry")


def overlap(one: KeyBox, other: KeyBox) -> bool:
    """True if some call lies in both boxes."""
    return all(
        one.axes[name][0] <= other.axes[name][1] and other.axes[name][0] <= one.axes[name][1]
        for name in one.axes.keys() & other.axes.keys()
    )


def _check_disjoint(definition: IndexedDefinition) -> None:
    for place, entry in enumerate(definition.entries):
        clash = next((item for item in definition.entries[place + 1 :] if overlap(entry.box, item.box)), None)
        if clash is not None:
            raise ContractError(f"{definition.name}: the boxes of {entry.key} and {clash.key} overlap")


def _corners(box: KeyBox) -> list[dict[str, int]]:
    return [{name: ends[side] for name, ends in box.axes.items()} for side in (0, 1)]

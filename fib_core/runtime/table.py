"""Which entry of an index covers a call. In: one indexed definition, its contract, sizes. Out: an entry, or why none.

Pure: `apply` and `fib explain` ask the same function, so they cannot disagree. Never the nearest entry: a size outside
every measured box gets none. A stale entry serves nobody and says why; the others are served as before.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from fib_core.index.guard import LAYOUT, covers, dtype_class
from fib_core.workloads.axisclass import axis_class
from fib_core.workloads.constraints import holds

if TYPE_CHECKING:
    from fib_core.index.staleness import Present, Stale
    from schemas.definition import Definition
    from schemas.index import IndexedDefinition, IndexEntry, KeptKey
    from schemas.solution import Solution

    Guarded = IndexEntry | KeptKey

SERVED_LAYOUT = LAYOUT
OUTSIDE = "outside_every_box"
OTHER_DEVICE = "other_device_class"
AMBIGUOUS = "ambiguous_entries"
UNSUPPORTED = "solution_does_not_support"
OUT_OF_CONTRACT = "out_of_contract"
STALE = "stale_"
"""Prefix of the reasons that come from staleness: ``stale_library``, ``stale_driver`` ..."""


class Match(NamedTuple):
    """Who covers a call: an entry, a key that keeps the incumbent, or None and the reason with its detail."""

    entry: "Guarded | None"
    reason: str
    detail: str


class Table:
    """The entries and kept keys of one definition, ready to be asked; ``present`` None makes nothing stale."""

    def __init__(
        self,
        indexed: "IndexedDefinition",
        definition: "Definition",
        solutions: "Mapping[str, Solution]",
        present: "Present | None" = None,
        measured_with: Mapping[str, str] = {},
    ) -> None:
        self.indexed, self.definition = indexed, definition
        self.every: list[Guarded] = [*indexed.entries, *indexed.kept]
        dtype = dtype_class(definition)
        fitting = [item for item in self.every if _is_servable(item, indexed.definition_digest, dtype)]
        served = {id(item) for item in fitting}
        self.ignored = [item for item in self.every if id(item) not in served]
        self.stale = _stale(indexed, present, measured_with)
        self.device_classes = sorted({item.box.device_class for item in fitting})
        self._constants = definition.const_axes
        self._solutions = solutions
        self._narrow: dict[tuple[str, tuple[int, ...]], list[Guarded]] = {}
        self._wide: list[Guarded] = []
        for item in fitting:
            self._file(item)

    def find(self, axes: Mapping[str, int], device_class: str) -> Match:
        """The entry for ``axes`` (every var axis bound) on ``device_class``."""
        if device_class not in self.device_classes:
            measured = ", ".join(self.device_classes) or "no device class"
            return Match(None, OTHER_DEVICE, f"this process is {device_class}; the entries were measured on {measured}")
        near = self._narrow.get((device_class, self._classes(axes)), ())
        sizes = self._constants | dict(axes)
        found = [e for e in (*near, *self._wide) if e.box.device_class == device_class and covers(e.box, sizes)]
        return self._checked(found[0], sizes) if len(found) == 1 else _none_or_many(found)

    def why_stale(self, entry: "Guarded") -> "tuple[Stale, ...]":
        """Reasons why this entry serves nobody here; empty if it serves."""
        return self.stale.get(id(entry), ())

    def _checked(self, entry: "Guarded", sizes: Mapping[str, int]) -> Match:
        broken = [text for text in self.definition.constraints if holds(text, sizes) is False]
        if broken:
            return Match(None, OUT_OF_CONTRACT, f"the definition demands {broken[0]}")
        if entry.solution_digest is None:
            return Match(entry, "", "")
        stale = self.why_stale(entry)
        if stale:
            return Match(None, STALE + stale[0].cause, "; ".join(item.detail for item in stale))
        # What a solution declares must be known to hold; an expression that sizes cannot decide is no permission.
        for text in self._solutions[entry.solution_digest].spec.supports:
            if holds(text, sizes) is not True:
                return Match(None, UNSUPPORTED, f"the chosen solution supports only {text}")
        return Match(entry, "", "")

    def _classes(self, axes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(axis_class(axes.get(name, 0)) for name in self.definition.var_axes)

    def _file(self, entry: "Guarded") -> None:
        """A box within one power-of-two class per var axis is found by it; others are always asked."""
        spans = [entry.box.axes.get(name) for name in self.definition.var_axes]
        if all(span is not None and axis_class(span[0]) == axis_class(span[1]) for span in spans):
            key = (entry.box.device_class, tuple(axis_class(span[0]) for span in spans if span is not None))
            self._narrow.setdefault(key, []).append(entry)
        else:
            self._wide.append(entry)


def _is_servable(item: "Guarded", definition_digest: str, dtype: str) -> bool:
    """True if the guard speaks of this contract, its dtypes (old guards leave them to the contract) and our layout."""
    box = item.box
    return box.definition_digest == definition_digest and box.layout == SERVED_LAYOUT and box.dtype in ("", dtype)


def _stale(
    indexed: "IndexedDefinition", present: "Present | None", measured_with: Mapping[str, str]
) -> "dict[int, tuple[Stale, ...]]":
    if present is None:
        return {}
    from fib_core.index.staleness import entry_reasons

    reasons = {id(entry): entry_reasons(entry, present, measured_with) for entry in indexed.entries}
    return {name: found for name, found in reasons.items() if found}


def _none_or_many(found: "list[Guarded]") -> Match:
    if not found:
        return Match(None, OUTSIDE, "outside every box that was measured")
    return Match(None, AMBIGUOUS, "more than one entry covers this call: " + ", ".join(sorted(e.key for e in found)))

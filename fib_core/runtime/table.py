"""Which entry of an index covers a call. In: one indexed definition, its contract, sizes. Out: an entry, or why none.

Pure: `apply` and `fib explain` ask the same function, so they cannot disagree. Never the nearest entry: a size outside
every measured box gets none.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from fib_core.axisclass import axis_class
from fib_core.constraints import holds

if TYPE_CHECKING:
    from schemas.definition import Definition
    from schemas.index import IndexedDefinition, IndexEntry
    from schemas.solution import Solution

SERVED_LAYOUT = "contiguous"
OUTSIDE = "outside_every_box"
OTHER_DEVICE = "other_device_class"
AMBIGUOUS = "ambiguous_entries"
UNSUPPORTED = "solution_does_not_support"
OUT_OF_CONTRACT = "out_of_contract"


class Match(NamedTuple):
    """The one entry that covers a call, or None and the reason (one of this module's names) with its detail."""

    entry: "IndexEntry | None"
    reason: str
    detail: str


class Table:
    """The entries of one definition, ready to be asked."""

    def __init__(
        self, indexed: "IndexedDefinition", definition: "Definition", solutions: "Mapping[str, Solution]"
    ) -> None:
        self.indexed, self.definition = indexed, definition
        fitting = [entry for entry in indexed.entries if _is_servable(entry, indexed.definition_digest)]
        self.stale = [entry for entry in indexed.entries if entry not in fitting]
        self.device_classes = sorted({entry.box.device_class for entry in fitting})
        self._constants = definition.const_axes
        self._solutions = solutions
        self._narrow: dict[tuple[str, tuple[int, ...]], list[IndexEntry]] = {}
        self._wide: list[IndexEntry] = []
        for entry in fitting:
            self._file(entry)

    def find(self, axes: Mapping[str, int], device_class: str) -> Match:
        """The entry for ``axes`` (every var axis bound) on ``device_class``."""
        if device_class not in self.device_classes:
            measured = ", ".join(self.device_classes) or "no device class"
            return Match(None, OTHER_DEVICE, f"this process is {device_class}; the entries were measured on {measured}")
        near = self._narrow.get((device_class, self._classes(axes)), ())
        sizes = self._constants | dict(axes)
        found = [e for e in (*near, *self._wide) if e.box.device_class == device_class and e.box.covers(sizes)]
        return self._checked(found[0], sizes) if len(found) == 1 else _none_or_many(found)

    def _checked(self, entry: "IndexEntry", sizes: Mapping[str, int]) -> Match:
        broken = [text for text in self.definition.constraints if holds(text, sizes) is False]
        if broken:
            return Match(None, OUT_OF_CONTRACT, f"the definition demands {broken[0]}")
        if entry.solution_digest is None:
            return Match(entry, "", "")
        # What a solution declares must be known to hold; an expression that sizes cannot decide is no permission.
        for text in self._solutions[entry.solution_digest].spec.supports:
            if holds(text, sizes) is not True:
                return Match(None, UNSUPPORTED, f"the chosen solution supports only {text}")
        return Match(entry, "", "")

    def _classes(self, axes: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(axis_class(axes.get(name, 0)) for name in self.definition.var_axes)

    def _file(self, entry: "IndexEntry") -> None:
        """Most boxes lie within one power-of-two class per var axis and are found by it; others are always asked."""
        spans = [entry.box.axes.get(name) for name in self.definition.var_axes]
        if all(span is not None and axis_class(span[0]) == axis_class(span[1]) for span in spans):
            key = (entry.box.device_class, tuple(axis_class(span[0]) for span in spans if span is not None))
            self._narrow.setdefault(key, []).append(entry)
        else:
            self._wide.append(entry)


def _is_servable(entry: "IndexEntry", definition_digest: str) -> bool:
    return entry.box.definition_digest == definition_digest and entry.box.layout == SERVED_LAYOUT


def _none_or_many(found: "list[IndexEntry]") -> Match:
    if not found:
        return Match(None, OUTSIDE, "outside every box that was measured")
    return Match(None, AMBIGUOUS, "more than one entry covers this call: " + ", ".join(sorted(e.key for e in found)))

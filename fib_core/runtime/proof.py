"""The real reader looks at a candidate index before any server does. In: a way to read objects. Out: a refusal, if any.

Nothing here knows how entries were made: it asks the table that serves, call by call, and believes only its answers.
Staleness is left out, since the publisher's process is not the server.
"""

from collections.abc import Iterator, Mapping

from fib_core.errors import ContractError, ObjectMissing, StoreRefused
from fib_core.index.guard import covers
from fib_core.index.lookup import all_corners, check, corners, just_outside
from fib_core.runtime.device_class import aliases_of, class_under, is_canonical
from fib_core.runtime.pulled import Getter, PulledIndex, assemble, object_key
from fib_core.runtime.table import OTHER_DEVICE, UNSUPPORTED, Match, Table
from fib_core.workloads.constraints import violated
from schemas.index import IndexedDefinition, IndexEntry, KeptKey


def prove(get: Getter, index_digest: str) -> None:
    """Raise ``ContractError``, naming entry and call, unless the reader would serve this index as its builder meant.

    Proved for every entry: it is reachable under every name of its device, its solution is listed, verified, of the
    same definition, and supports the smallest and the largest call; of every definition: boxes are disjoint and
    bounded on every axis; what lies in a kept key's box, just outside an entry or far from all is the incumbent's.
    """
    try:
        pulled = assemble(get, index_digest)
    except (ObjectMissing, StoreRefused) as error:
        raise ContractError(f"the reader cannot read the candidate index: {error}") from error
    _check_solutions(pulled)
    for item in pulled.index.definitions:
        proof = _Proof(item, pulled)
        proof.boxes()
        for entry in item.entries:
            proof.entry(entry)
        for kept in item.kept:
            proof.kept(kept)
        proof.far_away()
    check(pulled.index)


class _Proof:
    """One definition's questions to the real table."""

    def __init__(self, item: IndexedDefinition, pulled: PulledIndex) -> None:
        self._item, self._own_class = item, pulled.index.device_class
        self._definition = pulled.definitions[item.definition_digest]
        self._table = Table(item, self._definition, pulled.solutions)

    def boxes(self) -> None:
        """Every box holds a call and bounds every axis: without one it is unbounded, as no measurement can be."""
        for item in self._table.every:
            self._check_bounded(item)

    def _check_bounded(self, item: IndexEntry | KeptKey) -> None:
        odd = item.box.axes.keys() ^ set(self._definition.var_axes)
        if odd:
            raise self._refusal(item, {}, f"its box does not bound exactly the var axes: {', '.join(sorted(odd))}")
        empty = [name for name, (low, high) in item.box.axes.items() if not 0 <= low <= high]
        if empty:
            raise self._refusal(item, {}, f"its box holds no call: {empty[0]} {item.box.axes[empty[0]]}")

    def entry(self, entry: IndexEntry) -> None:
        """Every legal corner of the box reaches the entry on every device that may ask; no neighbour of it does."""
        self._check_guard(entry)
        legal = [call for call in all_corners(entry.box) if self._is_legal(call) and covers(entry.box, call)]
        if not legal:
            raise self._refusal(entry, {}, "no legal call lies at any corner of its box")
        for name, device_class in _devices(entry.box.device_class):
            for call in legal:
                self._check_reached(entry, call, name, device_class)
        for call in just_outside(entry.box):
            self._check_default(entry, call)

    def _check_reached(self, entry: IndexEntry, call: dict[str, int], name: str, device_class: str) -> None:
        match = self._table.find(call, device_class)
        if match.entry is entry:
            return
        # Between its smallest and its largest call a solution may decline; the caller's own function answers then.
        if match.reason != UNSUPPORTED or call in corners(entry.box):
            raise self._refusal(entry, call, f"{_why(match)}, asked as {name}")

    def kept(self, kept: KeptKey) -> None:
        """Calls in a kept key's box run the caller's own function."""
        for call in corners(kept.box):
            match = self._table.find(call, kept.box.device_class)
            if match.entry is not None and match.entry.solution_digest is not None:
                raise self._refusal(kept, call, f"it kept the incumbent, yet the entry {match.entry.key} serves this")

    def far_away(self) -> None:
        """The smallest call of all and one beyond every box go to the incumbent, unless a box says otherwise."""
        guarded = self._table.every
        if not guarded:
            return
        beyond = {
            name: 1 + 2 * max(item.box.axes[name][1] for item in guarded) for name in self._definition.var_axes
        }
        for call in (beyond, dict.fromkeys(beyond, 0)):
            self._check_default(guarded[0], call)

    def _check_guard(self, entry: IndexEntry) -> None:
        if entry in self._table.ignored:
            raise self._refusal(entry, {}, "its guard is for another definition, dtype or layout")
        if not is_canonical(entry.box.device_class) or entry.box.device_class != self._own_class:
            raise self._refusal(entry, {}, f"no device of this index calls itself {entry.box.device_class}")
        if entry.box.device_class.startswith("sm_") and not aliases_of(entry.box.device_class):
            raise self._refusal(entry, {}, f"no device name leads to {entry.box.device_class}")

    def _check_default(self, asked: IndexEntry | KeptKey, call: dict[str, int]) -> None:
        """A call that no box covers is nobody's; the boxes are asked one by one here, and not through the table."""
        match = self._table.find(call, self._own_class)
        owner = match.entry
        if owner is not None and not owner.box.covers(call):
            raise self._refusal(asked, call, f"no box covers it, yet {owner.key} serves it")

    def _is_legal(self, call: Mapping[str, int]) -> bool:
        return violated(self._definition.constraints, self._definition.const_axes | dict(call)) is None

    def _refusal(self, item: IndexEntry | KeptKey, call: Mapping[str, int], why: str) -> ContractError:
        point = f" at {', '.join(f'{name}={size}' for name, size in call.items())}" if call else ""
        return ContractError(f"{self._item.name} {item.key}{point}: {why}")


def _check_solutions(pulled: PulledIndex) -> None:
    """What the index lists is what its entries name, each at the place where its digest puts it."""
    listed = {item.solution_digest: item for item in pulled.index.solutions}
    for definition in pulled.index.definitions:
        for entry in definition.entries:
            if entry.solution_digest is not None and entry.solution_digest not in listed:
                raise ContractError(f"{definition.name} {entry.key}: its solution is not listed in the index")
    for digest, item in listed.items():
        if digest not in pulled.solutions:
            raise ContractError(f"the solution {item.name} is listed, but no entry names it")
        if item.object_key != object_key("solutions", digest):
            raise ContractError(f"the solution {item.name} is listed at {item.object_key}, not where it lies")


def _devices(device_class: str) -> Iterator[tuple[str, str]]:
    """(who asks, the class that it derives for itself): the class in its own words, and every marketing name."""
    yield device_class, device_class
    for alias in aliases_of(device_class):
        yield alias, class_under(device_class, alias)


def _why(match: Match) -> str:
    if match.entry is not None:
        return f"the entry {match.entry.key} answers instead"
    return match.detail if match.reason == OTHER_DEVICE else f"{match.reason}: {match.detail}"

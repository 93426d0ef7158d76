"""Why a call would be served as it would. In: a pulled index, a definition's name, axis sizes. Out: a plain dictionary.

Asks the same table as `apply`. Needs no torch: sizes and a device class are enough.
"""

import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fib_core.errors import ContractError
from fib_core.runtime.device_class import class_of_name, is_canonical
from fib_core.runtime.present import present_for
from fib_core.runtime.pulled import PulledIndex
from fib_core.runtime.table import OUTSIDE, Match, Table
from fib_core.workloads.axisclass import class_key

if TYPE_CHECKING:
    from fib_core.runtime.table import Guarded
    from schemas.decision import Decision
    from schemas.index import IndexedDefinition

NEAREST_COUNT = 3
ReadDecision = Callable[[str], "Decision | None"]


def explain(
    pulled: PulledIndex,
    definition: str,
    axes: Mapping[str, int],
    device_class: str | None = None,
    read_decision: ReadDecision = lambda digest: None,
) -> dict[str, Any]:
    """Which entry would serve a call of ``definition`` (name or digest) with ``axes``, on what evidence, or why none.

    ``device_class`` defaults to the index's own; a marketing name is looked up in the alias table. Raises
    ``ContractError`` for an unknown definition (close names are suggested) and for axes that are missing, unknown or
    negative.
    """
    item = _find(pulled, definition)
    table = table_of(pulled, item)
    sizes = _var_axes(table, axes)
    device_class = _class_of(device_class or pulled.index.device_class)
    match = table.find(sizes, device_class)
    served_by = "your function" if match.entry is None else ("solution" if match.entry.solution_digest else "incumbent")
    answer = {
        "definition": item.name,
        "definition_digest": item.definition_digest,
        "axes": sizes,
        "device_class": device_class,
        "index_digest": pulled.index_digest,
        "channel": pulled.channel,
        "profile": pulled.index.profile,
        "library_versions": pulled.index.library_versions,
        "ignored_entries": [entry.key for entry in table.ignored],
        "stale_entries": stale_entries(table),
        "served_by": served_by,
        "reason": match.reason or (match.entry.reason if match.entry else ""),
        "detail": (match.detail or ("" if match.entry else item.default_reason)) + _kept_nearby(table, sizes, match),
    }
    if match.entry is None:
        return answer | {"solution": None, "entry": None, "evidence": None, "nearest": _nearest(table, sizes)}
    return answer | {
        "solution": _solution(pulled, match.entry.solution_digest),
        "entry": {"key": match.entry.key, "box": _box(match.entry)},
        "evidence": _evidence(item, match.entry, read_decision(match.entry.decision_digest)),
        "nearest": [],
    }


def table_of(pulled: PulledIndex, item: "IndexedDefinition") -> Table:
    """The entries of one definition as this process would serve them, staleness included."""
    contract, index = pulled.definitions[item.definition_digest], pulled.index
    return Table(item, contract, pulled.solutions, present_for(index), index.library_versions)


def stale_entries(table: Table) -> list[dict[str, Any]]:
    """Entries that would serve nobody here, with every reason."""
    return [
        {"key": entry.key, "box": _box(entry), "reasons": [reason.detail for reason in table.why_stale(entry)]}
        for entry in table.indexed.entries
        if table.why_stale(entry)
    ]


def _kept_nearby(table: Table, sizes: Mapping[str, int], match: Match) -> str:
    """Outside every box, but in the class of a key that was decided: what was decided there."""
    key = class_key(sizes)
    kept = next((item for item in table.indexed.kept if item.key == key), None)
    return f"; at its key {key}: {kept.reason}" if kept is not None and match.reason == OUTSIDE else ""


def _class_of(text: str) -> str:
    if is_canonical(text):
        return text
    return class_of_name(text) or text


def _find(pulled: PulledIndex, definition: str) -> "IndexedDefinition":
    found = [item for item in pulled.index.definitions if definition in (item.name, item.definition_digest)]
    if len(found) == 1:
        return found[0]
    if found:
        digests = ", ".join(item.definition_digest for item in found)
        raise ContractError(f"the index has {len(found)} definitions named {definition!r}; give a digest: {digests}")
    names = sorted(item.name for item in pulled.index.definitions)
    near = get_close_matches(definition, names, 5, 0.5) or names[:10]
    raise ContractError(f"the index has no definition {definition!r}; close names: {', '.join(near) or 'none'}")


def _var_axes(table: Table, axes: Mapping[str, int]) -> dict[str, int]:
    names, constants = table.definition.var_axes, table.definition.const_axes
    missing = [name for name in names if name not in axes]
    unknown = [name for name, size in axes.items() if name not in names and constants.get(name) != size]
    problems = [
        *([f"missing: {', '.join(missing)}"] if missing else []),
        *([f"not an axis of it, or fixed to another size: {', '.join(unknown)}"] if unknown else []),
        *[f"{name} is negative" for name, size in axes.items() if size < 0],
    ]
    if problems:
        wanted = " ".join(f"{name}=SIZE" for name in names) or "no axes at all"
        raise ContractError(f"{table.definition.name} takes {wanted}; {'; '.join(problems)}")
    return {name: axes[name] for name in names}


def _solution(pulled: PulledIndex, digest: str | None) -> dict[str, Any] | None:
    if digest is None:
        return None
    solution = pulled.solutions[digest]
    return {"name": solution.name, "author": solution.author, "language": solution.spec.language, "digest": digest}


def _box(entry: "Guarded") -> dict[str, list[int]]:
    return {name: list(interval) for name, interval in entry.box.axes.items()}


def _evidence(item: "IndexedDefinition", entry: "Guarded", decision: "Decision | None") -> dict[str, Any]:
    """``control`` and ``estimates`` come from the decision itself and are None where that cannot be read."""
    control = decision.control if decision else None
    names = {"ratio", "interval", "standard_error", "p_value"}
    return {
        "against": {"incumbent": item.incumbent_name, "digest": item.incumbent_digest},
        **_figures(entry),
        "control": control.model_dump(mode="json", include=names) if control else None,
        "decision_digest": entry.decision_digest,
        "decision_read": decision is not None,
        "verdict": decision.verdict if decision else getattr(entry, "verdict", None),
        "failed": list(decision.failed) if decision else None,
        "min_effect": decision.min_effect if decision else None,
    }


def _figures(entry: "Guarded") -> dict[str, Any]:
    """What the index itself says; an entry of several keys shows its weakest and lists them all."""
    from schemas.index import IndexEntry

    if isinstance(entry, IndexEntry):
        keys, own = entry.evidence, entry
        figures = {"ratio": own.ratio, "interval": list(own.interval) if own.interval else None}
        figures |= {"standard_error": own.standard_error, "rounds": own.rounds, "finalist_count": own.finalist_count}
    else:
        keys = (entry.evidence,) if entry.evidence else ()
        figures = dict.fromkeys(("ratio", "interval", "standard_error"))
        figures |= {"rounds": keys[0].rounds if keys else 0, "finalist_count": keys[0].finalist_count if keys else 0}
    return figures | {"keys": [item.model_dump(mode="json") for item in keys]}


def _nearest(table: Table, sizes: Mapping[str, int]) -> list[dict[str, Any]]:
    def gap(entry: "Guarded") -> tuple[float, str]:
        return sum(_octaves(sizes.get(name), low, high) for name, (low, high) in entry.box.axes.items()), entry.key

    return [
        {
            "key": entry.key,
            "box": _box(entry),
            "device_class": entry.box.device_class,
            "solution_digest": entry.solution_digest,
            "octaves_away": round(gap(entry)[0], 2),
        }
        for entry in sorted(table.every, key=gap)[:NEAREST_COUNT]
    ]


def _octaves(size: int | None, low: int, high: int) -> float:
    """How many doublings lie between a size and an interval."""
    if size is None:
        return 0.0
    nearest = min(max(size, low), high)
    return abs(math.log2(1 + size) - math.log2(1 + nearest))

"""Lengths and the axes they imply: what a paged or ragged call says about its own shape.

In: a Definition and the structure facts of a call (lengths in tokens). Out: page counts, implied axis values, one plain
sentence per contradiction. Knows nothing of arrays, files or recipes.
"""

from collections.abc import Mapping, Sequence

from schemas.definition import Definition

Structure = Mapping[str, Sequence[int]]


def is_paged(definition: Definition) -> bool:
    """True if keys and values lie in pages that ``kv_indices`` lists."""
    return "kv_indices" in definition.inputs


def page_size_of(definition: Definition) -> int:
    """Tokens per page; 1 where the contract has no pages."""
    return definition.const_axes.get("page_size", 1)


def page_counts(lengths: Sequence[int], page_size: int) -> tuple[int, ...]:
    """Pages that each sequence of ``lengths`` tokens occupies."""
    return tuple(-(-length // page_size) for length in lengths)


def implied_axes(definition: Definition, structure: Structure) -> dict[str, int]:
    """Var axes that the structure fixes (``num_pages`` is never implied: a pool may be larger than its use)."""
    implied: dict[str, int] = {}
    kv, qo = structure.get("kv_lens"), structure.get("qo_lens")
    lengths = kv if kv is not None else qo
    if lengths is not None:
        implied |= {"batch_size": len(lengths), "len_indptr": len(lengths) + 1}
    if qo is not None:
        implied["total_q"] = sum(qo)
    if kv is not None:
        implied["total_kv"] = sum(kv)
        implied["num_kv_indices"] = sum(page_counts(kv, page_size_of(definition)))
    for name in ("positions", "pos_ids", "top_k"):
        if name in structure and name in definition.inputs:
            implied |= _first_axis(definition, name, len(structure[name]))
    free = definition.var_axes if implied else ()
    return {axis: value for axis, value in implied.items() if axis in free}


def contradictions(definition: Definition, axes: Mapping[str, int], structure: Structure) -> list[str]:
    """Plain sentences about what does not fit between a call's axes and its structure; empty if all fits."""
    found = [f"{name} holds the negative value {min(seen)}" for name, seen in structure.items() if _negative(seen)]
    if found:
        return found
    for axis, value in implied_axes(definition, structure).items():
        if axis in axes and axes[axis] != value:
            found.append(f"axis {axis} is {axes[axis]}, but the structure implies {value}")
    kv, qo = structure.get("kv_lens"), structure.get("qo_lens")
    if kv is not None and qo is not None and len(kv) != len(qo):
        found.append(f"kv_lens has {len(kv)} sequences, qo_lens has {len(qo)}")
    found += _pool_too_small(definition, axes, kv)
    return found + _position_too_large(axes, structure)


def _first_axis(definition: Definition, name: str, count: int) -> dict[str, int]:
    shape = definition.inputs[name].shape
    return {shape[0]: count} if shape else {}


def _negative(values: Sequence[int]) -> bool:
    return bool(values) and min(values) < 0


def _pool_too_small(definition: Definition, axes: Mapping[str, int], kv_lens: Sequence[int] | None) -> list[str]:
    if not kv_lens or "num_pages" not in axes:
        return []
    need = max(page_counts(kv_lens, page_size_of(definition)))
    fits = need <= axes["num_pages"]
    return [] if fits else [f"num_pages is {axes['num_pages']}, but one sequence needs {need} pages"]


def _position_too_large(axes: Mapping[str, int], structure: Structure) -> list[str]:
    positions = structure.get("positions") or structure.get("pos_ids") or ()
    limit = axes.get("max_seq_len")
    if limit is None or not positions or max(positions) < limit:
        return []
    return [f"position {max(positions)} is outside max_seq_len {limit}"]

"""Invented calls: small valid ones for a first judgement, awkward ones for the stress side. Never traffic.

In: a Definition. Out: points (axes, structure, scalars) that satisfy every constraint that speaks of sizes. Knows the
public axis names of the eight op types; other definitions get points only if axes are all that they need.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from fib_core.workloads.constraints import violated
from fib_core.workloads.ragged import implied_axes, is_paged, page_counts, page_size_of
from schemas.definition import Definition

Scalar = bool | int | float


class Point(NamedTuple):
    """One invented call."""

    axes: dict[str, int]
    structure: dict[str, tuple[int, ...]]
    scalars: dict[str, Scalar]


# Sequence lengths in tokens: (query, key/value) per sequence. A decode call has no query lengths.
_SMALL_LENGTHS = (((1,), (9,)), ((3, 1, 6), (5, 33, 6)))
_STRESS_LENGTHS = (((1, 3, 1), (0, 17, 1)), ((5, 7), (67, 13)))
_SMALL_SIZES = (4, 7, 1)
_STRESS_SIZES = (1, 13)
_HEADS = {"num_qo_heads": 8, "num_kv_heads": 2}
_TRIES = (1, 2, 3, 4, 8, 16, 32, 64, 128)


def small_valid_set(definition: Definition, limit: int = 3) -> list[Point]:
    """Up to ``limit`` small points that satisfy the constraints; empty if none can be invented."""
    return _points(definition, _SMALL_LENGTHS, _SMALL_SIZES)[:limit]


def stress_points(definition: Definition, limit: int = 2) -> list[Point]:
    """Up to ``limit`` awkward points: sizes 1 and prime, empty rows, odd lengths, degenerate sampling parameters."""
    points = _points(definition, _STRESS_LENGTHS, _STRESS_SIZES)
    return [_degenerate(definition, index, point) for index, point in enumerate(points[:limit])]


def _points(
    definition: Definition, lengths: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], sizes: Sequence[int]
) -> list[Point]:
    if "kv_indptr" in definition.inputs:
        return [point for qo, kv in lengths for point in _attention(definition, qo, kv)]
    return [Point(axes, {}, {}) for size in sizes for axes in _dense(definition, size)]


def _attention(definition: Definition, qo: tuple[int, ...], kv: tuple[int, ...]) -> list[Point]:
    structure = {"kv_lens": kv}
    if "qo_indptr" in definition.inputs:
        # A causal query row sees at least itself: an empty key side gets an empty query side.
        structure["qo_lens"] = tuple(min(q, k) for q, k in zip(qo, kv, strict=True))
    axes = implied_axes(definition, structure)
    if is_paged(definition):
        axes["num_pages"] = sum(page_counts(kv, page_size_of(definition))) + 3
    axes |= {name: size for name, size in _HEADS.items() if name in definition.var_axes}
    axes = {name: axes[name] for name in definition.var_axes if name in axes}
    legal = axes.keys() == set(definition.var_axes) and _legal(definition, axes)
    return [Point(axes, structure, {})] if legal else []


def _dense(definition: Definition, size: int) -> list[dict[str, int]]:
    """The first assignment near ``size`` that the constraints allow."""
    wanted = {name: _HEADS.get(name, size) for name in definition.var_axes}
    if "max_seq_len" in wanted:
        wanted["max_seq_len"] = max(64, size)
    if _legal(definition, wanted):
        return [wanted]
    names = definition.var_axes[:3]
    found = (wanted | dict(zip(names, trial, strict=True)) for trial in product(_TRIES, repeat=len(names)))
    return [axes for axes in found if _legal(definition, axes)][:1]


def _legal(definition: Definition, axes: Mapping[str, int]) -> bool:
    return violated(definition.constraints, definition.const_axes | dict(axes)) is None


def _degenerate(definition: Definition, index: int, point: Point) -> Point:
    """Sampling: first the greedy limit (one candidate), then no truncation at all."""
    scalars: dict[str, Scalar] = {}
    if "top_k" in definition.inputs:
        scalars["top_k"] = 1 if index == 0 else definition.const_axes.get("vocab_size", 1)
    if "top_p" in definition.inputs:
        scalars["top_p"] = 1e-6 if index == 0 else 1.0
    return point._replace(scalars=point.scalars | scalars)

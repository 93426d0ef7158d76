"""What a workload row must satisfy before anything is allocated for it: axes, recipes, blobs, indices, constraints.

In: a definition, a row's axes and recipes, the blob folder. Out: sentences for what is certainly wrong, paths of absent
blobs, and the facts that bind the row. An index that runs out of its cache is an illegal read on a GPU: found here.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fib_core.adapters.flashinfer_trace_blobs import BlobFolder, BlobMissing
from fib_core.adapters.flashinfer_trace_files import Malformed
from fib_core.errors import UnsupportedInput
from fib_core.workloads.constraints import violations
from fib_core.workloads.structure import generate
from schemas.definition import Definition
from schemas.workload import InputRecipe, PublicWorkload, SafetensorsInput, ScalarInput, StructuredInput

# Elements up to which a structured input is rebuilt for checking.
CHEAP = 1 << 20
# An offset array's last value is the length of what it cuts up.
_TOTALS = {"kv_indptr": ("num_kv_indices", "total_kv"), "qo_indptr": ("total_q",), "cu_seqlens": ("total_seq_len",)}


@dataclass
class Findings:
    """Of one row."""

    problems: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    scalars: dict[str, ScalarInput] = field(default_factory=dict)


def axis_problems(definition: Definition, axes: dict[str, int]) -> list[str]:
    """Every var axis bound, no stranger, a repeated const axis equal to the contract's value."""
    known = definition.const_axes
    problems = [f"axes.{name}: missing" for name in definition.var_axes if name not in axes]
    problems += [f"axes.{name}: not an axis of {definition.name}" for name in axes if name not in definition.axes]
    return problems + [
        f"axes.{name}: {size}, but the definition fixes {known[name]}"
        for name, size in axes.items()
        if name in known and size != known[name]
    ]


def recipe_problems(definition: Definition, inputs: dict[str, InputRecipe]) -> list[str]:
    """Recipes that fit their inputs; an absent recipe means random, as the public harness has it."""
    problems = [f"inputs.{name}: not an input of {definition.name}" for name in inputs if name not in definition.inputs]
    for name, spec in definition.inputs.items():
        recipe = inputs.get(name)
        kind = "random" if recipe is None else recipe.type
        if spec.shape is None and kind not in ("scalar", "safetensors"):
            problems.append(f"inputs.{name}: a Python scalar needs a value, the row says {_said(recipe)}")
        if kind == "random" and _is_structural(name):
            problems.append(f"inputs.{name}: offsets and page numbers cannot be random, the row needs a captured file")
        if spec.shape and kind == "scalar":
            problems.append(f"inputs.{name}: a tensor of rank {len(spec.shape)}, the row gives a scalar")
    return problems


def check_row(definition: Definition, row: PublicWorkload, blobs: BlobFolder) -> Findings:
    """All of the above, then blobs, index validity and constraints; stops where the next step would guess."""
    result = Findings(axis_problems(definition, row.axes) + recipe_problems(definition, row.inputs))
    if result.problems:
        return result
    for name, recipe in row.inputs.items():
        if isinstance(recipe, SafetensorsInput):
            _check_blob(definition, row.axes, name, recipe, blobs, result)
        elif isinstance(recipe, StructuredInput):
            _check_structured(definition, row.axes, name, recipe, result)
    if not result.problems:
        axes = definition.const_axes | row.axes
        shapes = {name: definition.shape_of(name, axes) or () for name in definition.inputs}
        result.problems += index_problems(definition, axes, result.arrays)
        result.problems += violations(definition.constraints, axes | result.arrays, shapes)
    return result


def index_problems(definition: Definition, axes: dict[str, int], arrays: dict[str, NDArray[Any]]) -> list[str]:
    """Offsets that start at 0, never fall and end at their total; page numbers inside the cache."""
    problems: list[str] = []
    if axes.get("num_pages", 1) == 0 and axes.get("num_kv_indices", 0) > 0 and "kv_indices" in definition.inputs:
        problems.append(f"kv_indices: {axes['num_kv_indices']} page numbers, but num_pages = 0, so none can be valid")
    for name, values in arrays.items():
        if name.endswith("indptr") or name == "cu_seqlens":
            problems += _offset_problems(name, values, axes, definition.constraints)
        elif name in ("kv_indices", "sparse_indices"):
            problems += _page_problems(name, values, axes)
        elif name.endswith("last_page_len"):
            problems += _range_problems(name, values, 0, axes.get("page_size"), "page_size")
    return problems


def _is_structural(name: str) -> bool:
    return name.endswith(("indptr", "last_page_len")) or name in ("kv_indices", "cu_seqlens")


def _said(recipe: InputRecipe | None) -> str:
    return "nothing" if recipe is None else recipe.type


def _check_blob(
    definition: Definition,
    axes: dict[str, int],
    name: str,
    recipe: SafetensorsInput,
    blobs: BlobFolder,
    result: Findings,
) -> None:
    try:
        entry = blobs.entry(recipe.path, recipe.tensor_key)
        wanted = definition.shape_of(name, axes)
        problem = _mismatch(entry.dtype, entry.shape, definition.inputs[name].dtype, wanted)
        if problem:
            result.problems.append(f"inputs.{name}: {problem}")
            return
        result.digests[name] = blobs.digest(recipe.path)
        if wanted is None:
            value = blobs.array(recipe.path, recipe.tensor_key).reshape(-1)[0].item()
            result.scalars[name] = ScalarInput(type="scalar", value=value)
        elif entry.dtype.startswith("int"):
            result.arrays[name] = blobs.array(recipe.path, recipe.tensor_key)
    except BlobMissing:
        result.missing.append(recipe.path)
    except (Malformed, OSError) as error:
        result.problems.append(f"inputs.{name}: blob {recipe.path[:120]}: {error}")


def _check_structured(
    definition: Definition, axes: dict[str, int], name: str, recipe: StructuredInput, result: Findings
) -> None:
    """Rebuild the array where that is cheap; a large one is left to the device, which sizes before it allocates."""
    shape = definition.shape_of(name, axes)
    if shape is None:
        result.problems.append(f"inputs.{name}: a Python scalar, the row gives an array")
    elif math.prod(shape) <= CHEAP and _size_of(recipe.params) <= CHEAP:
        try:
            values = generate(recipe)
        except (UnsupportedInput, ArithmeticError, LookupError, AttributeError) as error:
            result.problems.append(f"inputs.{name}: {error}")
            return
        if values.size != math.prod(shape):
            result.problems.append(f"inputs.{name}: {values.size} values for shape {list(shape)}")
        elif values.dtype.kind == "i":
            result.arrays[name] = values.reshape(shape)


def _size_of(params: Any) -> int:
    """The largest number and the total length that the parameters mention: what a generator may allocate."""
    if isinstance(params, dict | list | tuple):
        parts = [_size_of(item) for item in (params.values() if isinstance(params, dict) else params)]
        return max([len(parts), *parts])
    is_number = isinstance(params, int | float) and not isinstance(params, bool)
    return int(abs(params)) if is_number and math.isfinite(params) else 0


def _mismatch(dtype: str, shape: tuple[int, ...], want: str, sizes: tuple[int, ...] | None) -> str:
    if dtype != want:
        return f"the blob is {dtype}, the definition says {want}"
    if sizes is None:
        return "" if shape in ((), (1,)) else f"a Python scalar, but the blob has shape {list(shape)}"
    return "" if shape == sizes else f"the blob has shape {list(shape)}, the axes say {list(sizes)}"


def _offset_problems(
    name: str, values: NDArray[Any], axes: dict[str, int], constraints: tuple[str, ...]
) -> list[str]:
    if values.ndim != 1 or values.size == 0:
        return [f"{name}: offsets need one dimension and at least one entry"]
    problems = [] if values[0] == 0 else [f"{name}: starts at {int(values[0])}, not at 0"]
    falls = np.flatnonzero(np.diff(values.astype(np.int64)) < 0)
    if falls.size:
        at = int(falls[0])
        problems.append(f"{name}: falls from {int(values[at])} to {int(values[at + 1])} at position {at + 1}")
    if "batch_size" in axes and "indptr" in name and values.size != axes["batch_size"] + 1:
        problems.append(f"{name}: {values.size} offsets, expected batch_size + 1 = {axes['batch_size'] + 1}")
    total = next((axis for axis in _TOTALS.get(name, ()) if axis in axes), None)
    stated = any(f"{name}[-1]" in text for text in constraints)
    if total and not stated and int(values[-1]) != axes[total]:
        problems.append(f"{name}: ends at {int(values[-1])}, but {total} = {axes[total]}")
    return problems


def _page_problems(name: str, values: NDArray[Any], axes: dict[str, int]) -> list[str]:
    if "num_pages" not in axes:
        return []
    if name == "sparse_indices":  # token slots, -1 pads a short row
        slots = axes["num_pages"] * axes.get("page_size", 1)
        return _range_problems(name, values, -1, slots - 1, "num_pages * page_size - 1")
    return _range_problems(name, values, 0, axes["num_pages"] - 1, "num_pages - 1")


def _range_problems(name: str, values: NDArray[Any], low: int, high: int | None, means: str) -> list[str]:
    if high is None or not values.size:
        return []
    least, most = int(values.min()), int(values.max())
    if least < low:
        return [f"{name}: reaches {least}, the lowest valid value is {low}"]
    if most > high:
        return [f"{name}: reaches {most}, the highest valid value is {high} ({means})"]
    return []

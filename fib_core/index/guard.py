"""What guards an entry besides its axis box: dtypes, layout, mean lengths. One set of functions for builder and reader.

In: definitions, boxes, sizes. Out: class names, truths. No heavy imports: a serving process asks it too.

Lengths themselves lie in tensors, and reading them would make a GPU wait. What shapes alone tell is the mean: pages or
tokens per sequence. Its power-of-two class is the length structure that a call can be checked for at no cost.
"""

from collections.abc import Iterable, Mapping

from fib_core.workloads.axisclass import axis_class
from schemas.decision import KeyBox
from schemas.definition import Definition

LAYOUT = "contiguous"
TOTALS = ("total_q", "total_kv", "num_kv_indices")


def dtype_class(definition: Definition) -> str:
    """``bfloat16+int32->bfloat16+float32``: dtypes of tensor inputs and of outputs, each once, in order of names."""
    sides = (
        dict.fromkeys(spec.dtype for _, spec in sorted(side.items()) if spec.shape is not None)
        for side in (definition.inputs, definition.outputs)
    )
    return "->".join("+".join(side) or "scalar" for side in sides)


def mean_lengths(axes: Mapping[str, int]) -> dict[str, int]:
    """Class of each total's mean per sequence, of the totals that ``axes`` has; empty without sequences."""
    count = axes["len_indptr"] - 1 if "len_indptr" in axes else axes.get("batch_size", 0)
    return {name: axis_class(-(-axes[name] // count)) for name in TOTALS if name in axes} if count > 0 else {}


def length_guard(points: Iterable[Mapping[str, int]]) -> dict[str, tuple[int, int]]:
    """Lowest and highest class of every mean length over measured points, of the totals that all of them have."""
    means = [mean_lengths(point) for point in points]
    common = set.intersection(*(set(item) for item in means)) if means else set()
    return {name: (min(m[name] for m in means), max(m[name] for m in means)) for name in sorted(common)}


def covers(box: KeyBox, axes: Mapping[str, int]) -> bool:
    """True if a call of these sizes lies in the box, its mean lengths included."""
    if not box.covers(axes):
        return False
    if not box.lengths:
        return True
    means = mean_lengths(axes)
    return all(name in means and low <= means[name] <= high for name, (low, high) in box.lengths.items())

"""Power-of-two classes of axis sizes: one bucket function for split, decision and dispatch.

In: axis sizes. Out: classes, key strings, neighbourhood. Everything that groups shapes goes through here, so a builder
and a loader can never disagree about a bucket.
"""

from collections.abc import Mapping


def axis_class(size: int) -> int:
    """0 for 0, 1 for 1, else the smallest power of two >= ``size``: class 8 is (4, 8]."""
    return size if size <= 1 else 1 << (size - 1).bit_length()


def class_step(size: int) -> int:
    """Ordinal of the class of ``size``: 0, 1, 2, 3 ... for the classes 0, 1, 2, 4 ..."""
    return 0 if size == 0 else (size - 1).bit_length() + 1


def class_key(axes: Mapping[str, int]) -> str:
    """Key of an axis point: ``M=8`` or ``batch_size=4,num_pages=1024``; axes in alphabetical order."""
    return ",".join(f"{name}={axis_class(axes[name])}" for name in sorted(axes)) or "-"


def are_neighbours(one: Mapping[str, int], other: Mapping[str, int]) -> bool:
    """True if no axis differs by more than one class step (a point is its own neighbour)."""
    return one.keys() == other.keys() and all(abs(class_step(one[name]) - class_step(other[name])) <= 1 for name in one)

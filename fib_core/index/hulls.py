"""Hulls of points with whole-numbered coordinates: what lies between two corners, and cutting hulls apart.

In: points as tuples of equal length. Out: hulls. Plain geometry; knows nothing of decisions, workloads or axes' names.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

Point = tuple[int, ...]


class Hull(NamedTuple):
    """All points between two corners, both included."""

    low: Point
    high: Point

    def covers(self, point: Point) -> bool:
        """True if the point is nowhere below the low corner and nowhere above the high one."""
        return all(low <= at <= high for low, at, high in zip(self.low, point, self.high, strict=True))

    def meets(self, other: "Hull") -> bool:
        """True if some point lies in both."""
        return all(
            low <= there and here <= high
            for low, high, here, there in zip(self.low, self.high, other.low, other.high, strict=True)
        )

    @property
    def size(self) -> int:
        """Whole-numbered points inside."""
        return math.prod(high - low + 1 for low, high in zip(self.low, self.high, strict=True))

    def minus(self, other: "Hull") -> list["Hull"]:
        """Disjoint hulls that together hold every point of this one that is not in ``other``."""
        if not self.meets(other):
            return [self]
        pieces, low, high = [], list(self.low), list(self.high)
        for axis in range(len(low)):
            if low[axis] < other.low[axis]:
                pieces.append(Hull(tuple(low), (*high[:axis], other.low[axis] - 1, *high[axis + 1 :])))
                low[axis] = other.low[axis]
            if high[axis] > other.high[axis]:
                pieces.append(Hull((*low[:axis], other.high[axis] + 1, *low[axis + 1 :]), tuple(high)))
                high[axis] = other.high[axis]
        return pieces


def hull_of(points: Sequence[Point]) -> Hull:
    """The smallest hull of one or more points."""
    columns = list(zip(*points, strict=True))
    return Hull(tuple(map(min, columns)), tuple(map(max, columns)))


def pairs(points: Sequence[Point]) -> list[Hull]:
    """Hulls of any two comparable points."""
    return [Hull(low, high) for low, high in combinations(points, 2) if Hull(low, high).covers(low)]


def neighbours(points: Sequence[Point]) -> list[Hull]:
    """Comparable pairs with no third point between them."""
    return [hull for hull in pairs(points) if sum(map(hull.covers, points)) == len(hull)]


def within(hull: Hull, other: Hull) -> bool:
    """True if ``hull`` is a proper part of ``other``."""
    return hull != other and other.covers(hull.low) and other.covers(hull.high)


def disjoint(hulls: Iterable[Hull]) -> list[tuple[Hull, Hull]]:
    """(part, the hull that it is cut from): together they cover what the hulls cover; the largest stay whole."""
    done: list[tuple[Hull, Hull]] = []
    for whole in sorted(hulls, key=lambda hull: (-hull.size, hull)):
        parts = [whole]
        for earlier, _ in tuple(done):
            parts = [piece for part in parts for piece in part.minus(earlier)]
        done += [(part, whole) for part in parts]
    return done

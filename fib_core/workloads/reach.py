"""What boxes could reach if certain calls were measured: the same rule as ``boxes``, before anything is measured.

In: candidate calls and the traffic, by size. Out: which gaps would stay open, and the share of traffic that is expected
inside boxes. Calls are named by their place among the candidates. Knows neither budgets nor records.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fib_core.workloads.axisclass import class_step

FLIPS_PER_STEP = 0.2
"""Assumed rate at which the best kernel changes per doubling of the size: a box over a long gap may well fail."""

Places = tuple[int, ...]
Sizes = NDArray[np.int64]


class Reach:
    """Order, distance and gates among candidates (rows of ``sizes``), and the traffic that lies between them.

    ``lengths`` and ``traffic_lengths`` are the classes that guard a box beside its sizes (``guard.mean_lengths``).
    """

    def __init__(
        self,
        sizes: Sizes,
        traffic: Sizes,
        counts: Sequence[int],
        lengths: Sizes | None = None,
        traffic_lengths: Sizes | None = None,
    ) -> None:
        self._sizes = sizes
        self._order = _below(sizes, sizes)
        self._same = self._order & self._order.T
        steps = np.vectorize(class_step, otypes=[np.int64])(sizes)
        self._near = _furthest(steps) <= 1
        self._odds = np.exp(-FLIPS_PER_STEP * _furthest(np.log2(1 + sizes)))
        self._adjacent = np.sum(np.abs(sizes[:, None, :] - sizes[None, :, :]), axis=2) == 1
        self._from_low = _below(sizes, traffic)
        self._to_high = _below(-sizes, -traffic)
        self._lengths = lengths if lengths is not None else sizes[:, :0]
        self._traffic_lengths = traffic_lengths if traffic_lengths is not None else traffic[:, :0]
        weights = np.asarray(counts, dtype=float)
        self._weights = weights / weights.sum() if weights.size else weights

    def share(self, train: Places, gates: Places) -> float:
        """Expected share of the traffic inside boxes, if ``train`` is decided and ``gates`` are its holdouts.

        A measured call is covered for certain; one in a box with the odds that no change of winner cuts the box.
        """
        best = np.zeros(len(self._weights))
        for place in train:
            best[self._from_low[place] & self._to_high[place]] = 1.0
        opened = self.open_gaps(train, gates)
        for low in train:
            for high in train:
                if self.less(low, high) and not any(self._spans(low, gap, high) for gap in opened):
                    inside = self._served(low, high, (*train, *gates))
                    np.maximum(best, inside * self._odds[low, high], out=best)
        return float(best @ self._weights)

    def _served(self, low: int, high: int, measured: Places) -> NDArray[np.bool_]:
        """Traffic in the hull of two places whose mean lengths lie among those that are measured in it."""
        inside = self._from_low[low] & self._to_high[high]
        within = [place for place in measured if self._order[low, place] and self._order[place, high]]
        seen = self._lengths[within]
        fits = (self._traffic_lengths >= seen.min(axis=0)) & (self._traffic_lengths <= seen.max(axis=0))
        served: NDArray[np.bool_] = inside & np.all(fits, axis=1)
        return served

    def open_gaps(self, train: Places, gates: Places) -> list[tuple[int, int]]:
        """Neighbours with no holdout between them that is a gate of either."""
        own = {place: self._gates_of(place, gates) for place in train}
        return [
            (low, high)
            for low in train
            for high in train
            if self.less(low, high)
            and not self._adjacent[low, high]
            and not any(self.inside(low, other, high) for other in train)
            and not any(self.inside(low, gate, high) for gate in own[low] | own[high])
        ]

    def less(self, low: int, high: int) -> bool:
        """True if ``low`` is nowhere larger and somewhere smaller."""
        return bool(self._order[low, high]) and not self._same[low, high]

    def inside(self, low: int, middle: int, high: int) -> bool:
        """True if ``middle`` lies between the two and equals neither."""
        return self.less(low, middle) and self.less(middle, high)

    def crosses(self, group: Sequence[int], train: Places) -> bool:
        """True if the hull of a group of places meets a box between two of ``train``."""
        floor, ceiling = self._sizes[list(group)].min(axis=0), self._sizes[list(group)].max(axis=0)
        return any(
            bool(np.all(self._sizes[low] <= ceiling) and np.all(floor <= self._sizes[high]))
            for low in train
            for high in train
            if self._order[low, high]
        )

    def near(self, one: int, other: int) -> bool:
        """True if no axis differs by more than a class step."""
        return bool(self._near[one, other])

    def _gates_of(self, place: int, gates: Places) -> set[int]:
        """Holdouts within a class step; all of them where none is so near: the rule of the decision."""
        return {gate for gate in gates if self._near[place, gate]} or set(gates)

    def _spans(self, low: int, gap: tuple[int, int], high: int) -> bool:
        return bool(self._order[low, gap[0]] and self._order[gap[1], high])


def _below(one: Sizes, other: Sizes) -> NDArray[np.bool_]:
    """Row by row: nowhere above."""
    found: NDArray[np.bool_] = np.all(one[:, None, :] <= other[None, :, :], axis=2)
    return found


def _furthest(rows: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Pairwise distance along the axis where two rows differ most: axes that follow each other count once."""
    found: NDArray[np.float64] = np.max(np.abs(rows[:, None, :] - rows[None, :, :]), axis=2, initial=0).astype(float)
    return found

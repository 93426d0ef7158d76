"""Reach: what a choice expects of boxes is what the learning of boxes gives, if one solution wins everywhere."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.workloads import reach
from fib_core.workloads.axisclass import are_neighbours
from fib_core.workloads.reach import Reach
from tests.core.plots import A, Plot, Point, Spot, inside, learnt, plots

CERTAIN = 1.0


def gated(plot: Plot) -> Plot:
    """The plot with one winner everywhere, everything timed, and gates by the decision's own rule."""
    train = [replace(item, timed=True) for item in plot.spots if item.split == "train"]
    held = [item for item in plot.spots if item.split == "holdout"]
    keys: dict[Spot, set[str]] = {item: set() for item in held}
    for spot in train:
        for gate in [item for item in held if are_neighbours(spot.axes, item.axes)] or held:
            keys[gate].add(spot.key)
    gates = [replace(item, gates=frozenset(keys[item])) for item in held]
    return Plot((*train, *gates), tuple((key, A) for key in sorted({item.key for item in train})))


def points_of(plot: Plot, split: str) -> list[Point]:
    return [item.point for item in plot.spots if item.split == split]


def rows(points: Sequence[Point], width: int) -> np.ndarray:
    return np.array(points, dtype=np.int64).reshape(len(points), width)


def share(train: Sequence[Point], held: Sequence[Point], calls: Sequence[Point]) -> float:
    width = len(calls[0])
    found = Reach(rows([*train, *held], width), rows(calls, width), [1] * len(calls))
    return found.share(tuple(range(len(train))), tuple(range(len(train), len(train) + len(held))))


@given(plots(axes=(1, 3)), st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=12))
def test_without_changes_of_winner_it_is_the_share_of_calls_inside_the_boxes(
    plot: Plot, calls: list[tuple[int, int, int]]
) -> None:
    world = gated(plot)
    if not points_of(world, "train"):
        return
    traffic = [call[: len(world.spots[0].point)] for call in calls]
    boxes = learnt(world)
    covered = sum(any(inside(box, call) for box in boxes) for call in traffic)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reach, "FLIPS_PER_STEP", 0.0)
        expected = share(points_of(world, "train"), points_of(world, "holdout"), traffic)
    assert expected == pytest.approx(covered / len(traffic))


def test_a_longer_gap_is_worth_less_and_a_measured_call_is_certain() -> None:
    assert share([(1,), (64,)], [(8,)], [(8,)]) < share([(4,), (16,)], [(8,)], [(8,)]) < CERTAIN
    assert share([(8,)], [], [(8,)]) == CERTAIN
    assert share([(1,), (64,)], [], [(8,)]) == 0.0


def test_axes_that_follow_each_other_make_a_gap_no_longer() -> None:
    alone = share([(1,), (64,)], [(8,)], [(8,)])
    assert share([(1, 1), (64, 64)], [(8, 8)], [(8, 8)]) == alone

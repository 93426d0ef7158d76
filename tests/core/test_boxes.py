"""Boxes: only measured points and gaps that a holdout vouches for; disjoint, bounded, and blind to order."""

# long file: the rule's properties, then its examples, one after the other
import random
from dataclasses import replace
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fib_core.errors import ContractError
from fib_core.index.boxes import learn
from fib_core.index.hulls import Hull, hull_of, neighbours
from tests.core.plots import A, B, Plot, Point, Spot, decisions_of, inside, learnt, placed_of, plots, won_by
from tests.core.world import paged

many = settings(max_examples=80)


def line(*spots: Spot, winners: dict[int, str | None] | None = None, default: str | None = A) -> Plot:
    """Spots on one axis; every key of a train spot goes to ``default`` unless its point says otherwise."""
    train = [item for item in spots if item.split == "train"]
    chosen = {item.key: default for item in train}
    chosen |= {item.key: (winners or {}).get(item.point[0], chosen[item.key]) for item in train}
    keys = frozenset(chosen)
    gated = [replace(item, gates=keys) if item.split != "train" and not item.gates else item for item in spots]
    return Plot(tuple(gated), tuple(sorted(chosen.items(), key=lambda pair: pair[0])))


def train(*point: int, timed: bool = True) -> Spot:
    return Spot(point, "train", timed)


def holdout(*point: int) -> Spot:
    return Spot(point, "holdout")


def spans(plot: Plot) -> list[list[tuple[int, int]]]:
    return [list(box.axes.values()) for box in learnt(plot)]


@many
@given(plots())
def test_no_two_boxes_share_a_call_and_each_has_one_winner(plot: Plot) -> None:
    boxes = learnt(plot)
    assert all(won_by(box) in (A, B) for box in boxes)
    for one, other in combinations(boxes, 2):
        assert any(one.axes[axis][1] < other.axes[axis][0] or other.axes[axis][1] < one.axes[axis][0]
                   for axis in one.axes)  # fmt: skip


@many
@given(plots())
def test_every_measured_point_of_a_promoted_key_is_covered_for_its_winner(plot: Plot) -> None:
    boxes = learnt(plot)
    for winner in (A, B):
        for spot in plot.measured(winner):
            assert [won_by(box) for box in boxes if inside(box, spot.point)] == [winner]


@many
@given(plots())
def test_no_box_covers_a_point_where_something_else_was_decided(plot: Plot) -> None:
    for box in learnt(plot):
        assert not [spot for spot in plot.foreign(won_by(box)) if inside(box, spot.point)]


@many
@given(plots())
def test_no_box_reaches_into_a_key_of_another_verdict(plot: Plot) -> None:
    keys: dict[str, list[Point]] = {}
    for spot in plot.spots:
        if spot.split == "train":
            keys.setdefault(spot.key, []).append(spot.point)
    for box in learnt(plot):
        low, high = (tuple(ends[side] for ends in box.axes.values()) for side in (0, 1))
        for key, points in keys.items():
            if dict(plot.winners)[key] != won_by(box):
                assert not Hull(low, high).meets(hull_of(points))


@many
@given(plots())
def test_a_box_lies_between_two_measured_points_of_its_winner(plot: Plot) -> None:
    for box in learnt(plot):
        spots = plot.measured(won_by(box))
        low, high = (tuple(ends[side] for ends in box.axes.values()) for side in (0, 1))
        assert any(below(one.point, low) and below(high, other.point) for one in spots for other in spots)


@many
@given(plots())
def test_a_gap_without_a_holdout_inside_stays_open(plot: Plot) -> None:
    boxes = learnt(plot)
    for winner in (A, B):
        for gap in neighbours(sorted(spot.point for spot in plot.measured(winner))):
            if gap.size > 2 and not vouched(plot, gap, winner):
                assert not [box for box in boxes if inside(box, gap.low) and inside(box, gap.high)]


@many
@given(plots(), st.randoms(use_true_random=False))
def test_losing_a_holdout_never_gains_a_call(plot: Plot, rng: random.Random) -> None:
    counting = [item for item in plot.spots if item.split == "holdout" and any(plot.vouches(item, w) for w in (A, B))]
    if not counting:
        return
    lost = rng.choice(counting)
    fewer = replace(plot, spots=tuple(item for item in plot.spots if item is not lost))
    full = learnt(plot)
    for box in learnt(fewer):
        for point in corners_and_more(list(box.axes.values()), rng):
            assert [won_by(other) for other in full if inside(other, point)] == [won_by(box)]


@many
@given(plots(), st.randoms(use_true_random=False))
def test_the_order_of_decisions_and_workloads_changes_nothing(plot: Plot, rng: random.Random) -> None:
    decisions, placed = decisions_of(plot), placed_of(plot)
    rng.shuffle(decisions)
    rng.shuffle(placed)
    assert learn(decisions, placed) == learnt(plot)


@many
@given(plots(axes=(1, 1), largest=40))
def test_on_one_axis_the_rule_is_exactly_that_of_the_gaps(plot: Plot) -> None:
    """An independent statement of the rule, call by call."""
    boxes = learnt(plot)
    for size in range(42):
        found = [won_by(box) for box in boxes if inside(box, (size,))]
        assert found == [winner for winner in (A, B) if serves(plot, winner, size)]


def serves(plot: Plot, winner: str, size: int) -> bool:
    mine = sorted(spot.point[0] for spot in plot.measured(winner))
    if size in mine:
        return True
    low, high = max((x for x in mine if x < size), default=None), min((x for x in mine if x > size), default=None)
    if low is None or high is None or any(low <= spot.point[0] <= high for spot in plot.foreign(winner)):
        return False
    return vouched(plot, Hull((low,), (high,)), winner)


def vouched(plot: Plot, gap: Hull, winner: str) -> bool:
    keys = {spot.key for spot in plot.measured(winner) if spot.point in (gap.low, gap.high)}
    return any(
        spot.split == "holdout" and gap.covers(spot.point) and spot.gates & keys and spot.point not in gap
        for spot in plot.spots
    )


def below(one: Point, other: Point) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def corners_and_more(ends: list[tuple[int, int]], rng: random.Random) -> list[Point]:
    """Calls of a box: its corners, and a few from within."""
    return [*product(*ends), *(tuple(rng.randint(*span) for span in ends) for _ in range(5))]


def test_a_chain_of_vouched_gaps_is_one_box_that_names_all_its_decisions() -> None:
    (box,) = learnt(line(train(1), holdout(3), train(8), holdout(12), train(32)))
    assert box.axes == {"x0": (1, 32)}
    assert [item.key for item in box.decisions] == ["x0=1", "x0=32", "x0=8"]


def test_a_point_between_that_kept_the_incumbent_breaks_the_chain() -> None:
    plot = line(train(1), holdout(3), train(8), holdout(12), train(32), winners={8: None})
    assert spans(plot) == [[(1, 1)], [(32, 32)]]


def test_a_point_between_that_was_never_timed_is_no_evidence_unless_its_key_is_won() -> None:
    between = line(train(1), train(8, timed=False), holdout(12), train(32), winners={8: None})
    assert spans(between) == [[(1, 1)], [(32, 32)]]
    own = line(train(17), train(20, timed=False), holdout(24), train(32))
    assert spans(own) == [[(17, 32)]]


def test_inside_a_key_gaps_are_judged_like_any_other() -> None:
    assert spans(line(train(17), train(20), holdout(24), train(32))) == [[(17, 17)], [(20, 32)]]


def test_a_holdout_that_gated_neither_neighbour_or_is_stress_vouches_for_nothing() -> None:
    far = Spot((4,), "holdout", gates=frozenset({"x0=128"}))
    assert spans(line(train(1), far, train(8), train(128))) == [[(1, 1)], [(8, 8)], [(128, 128)]]
    assert spans(line(train(1), Spot((4,), "stress"), train(8))) == [[(1, 1)], [(8, 8)]]


def test_a_holdout_at_the_edge_of_a_gap_is_not_inside() -> None:
    assert spans(line(train(1), train(8), Spot((8,), "holdout"))) == [[(1, 1)], [(8, 8)]]


def test_points_side_by_side_need_no_holdout_since_nothing_lies_between() -> None:
    assert spans(line(train(7), train(8))) == [[(7, 8)]]
    assert spans(line(train(7), train(9))) == [[(7, 7)], [(9, 9)]]


def test_a_gate_that_only_the_incumbent_survived_closes_the_road() -> None:
    failed = Spot((5,), "holdout", gates=frozenset({"x0=64"}))
    plot = line(train(1), holdout(3), failed, train(8), train(64), winners={64: None})
    assert spans(plot) == [[(1, 1)], [(8, 8)]]


def test_points_that_cannot_be_compared_are_no_neighbours() -> None:
    assert spans(line(train(1, 9), holdout(4, 5), train(8, 1))) == [[(1, 1), (9, 9)], [(8, 8), (1, 1)]]


def test_two_winners_whose_gaps_cross_both_leave_the_crossing_alone() -> None:
    a, b = [Spot((0, 4)), Spot((8, 4))], [Spot((4, 0)), Spot((4, 8))]
    keys = {item.key: A for item in a} | {item.key: B for item in b}
    inner = [Spot((2, 4), "holdout", gates=frozenset(keys)), Spot((4, 2), "holdout", gates=frozenset(keys))]
    boxes = learnt(Plot((*a, *b, *inner), tuple(sorted(keys.items()))))
    assert all(low == high for box in boxes for low, high in box.axes.values())
    alone = learnt(Plot((*a, inner[0]), tuple((key, A) for key in sorted({item.key for item in a}))))
    assert [list(box.axes.values()) for box in alone] == [[(0, 8), (4, 4)]]


def two_chains(a: list[Point], b: list[Point], held: list[Point]) -> Plot:
    spots = [Spot(point) for point in [*a, *b]]
    keys = {item.key: A if item.point in a else B for item in spots}
    gates = [Spot(point, "holdout", gates=frozenset(keys)) for point in held]
    return Plot((*spots, *gates), tuple(sorted(keys.items())))


def test_gaps_do_not_merge_over_a_corner_where_something_else_was_decided() -> None:
    chain, held = [(0, 0), (4, 2), (8, 8)], [(2, 1), (6, 5)]
    assert [list(box.axes.values()) for box in learnt(two_chains(chain, [], held))] == [[(0, 8), (0, 8)]]
    boxes = learnt(two_chains(chain, [(7, 1)], held))
    assert [won_by(box) for box in boxes if inside(box, (7, 1))] == [B]
    assert all(any(inside(box, point) for box in boxes) for point in [*chain, *held])


def test_merged_boxes_of_two_winners_may_not_meet_where_neither_measured() -> None:
    a, b = [(0, 14), (6, 15), (12, 16)], [(9, 0), (20, 2), (21, 14)]
    boxes = learnt(two_chains(a, b, [(3, 14), (9, 15), (12, 1), (20, 8)]))
    assert [won_by(box) for box in boxes if inside(box, (3, 14)) or inside(box, (20, 8))] == [A, B]
    assert not [box for box in boxes if inside(box, (10, 14))]
    assert [won_by(box) for box in learnt(two_chains(a, [], [(3, 14), (9, 15)])) if inside(box, (10, 14))] == [A]


def test_an_axis_that_follows_another_by_contract_leaves_no_gap_between_adjacent_batches() -> None:
    definition = paged(4)
    names = ("batch_size", "len_indptr", "num_kv_indices", "num_pages")
    rows = [dict(zip(names, (batch, batch + 1, 7, 64), strict=True)) for batch in (2, 3)]
    plot = Plot(tuple(Spot(tuple(row.values())) for row in rows), ())
    keys = {item.key: A for item in plot.spots}
    plot = replace(plot, winners=tuple(keys.items()))
    assert len(learnt(plot)) == 2
    named = [
        item.model_copy(update={"workload": item.workload.model_copy(update={"axes": row})})
        for item, row in zip(placed_of(plot), rows, strict=True)
    ]
    assert len(learn(renamed(plot, named), named)) == 2
    assert len(learn(renamed(plot, named), named, definition)) == 1


def renamed(plot: Plot, placed: list) -> list:
    """The plot's decisions under the keys and digests of other axis names."""
    from fib_core.workloads.axisclass import class_key

    return [
        decision.model_copy(update={"key": class_key(item.workload.axes), "workloads": (item.workload.digest,)})
        for decision, item in zip(sorted(decisions_of(plot), key=lambda d: d.key), placed, strict=True)
    ]


def test_two_decisions_about_one_key_are_refused() -> None:
    plot = line(train(1))
    with pytest.raises(ContractError, match="two decisions about one key"):
        learn(decisions_of(plot) * 2, placed_of(plot))


def test_nothing_promoted_means_no_boxes() -> None:
    assert learnt(line(train(1), holdout(2), train(8), default=None)) == []
    assert learn([], []) == []

"""Made-up evidence for the learning of boxes: points with sides, winners per key, holdouts that gate some keys.

``Plot`` is what a test draws; ``decisions_of`` and ``placed_of`` turn it into records. Nothing here is under test.
"""

from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st

from fib_core.index.boxes import LearntBox, learn
from fib_core.workloads.axisclass import class_key
from schemas.decision import Decision, KeyBox
from schemas.snapshot import Placed
from schemas.workload import Workload
from tests.core.world import DEVICE, gemm

DEFINITION = gemm().digest
SNAPSHOT = "sha256:" + "5" * 64
A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64
Point = tuple[int, ...]


@dataclass(frozen=True)
class Spot:
    """One workload: its point, its side, whether it was timed; a holdout names the keys whose gate it was."""

    point: Point
    split: str = "train"
    timed: bool = True
    gates: frozenset[str] = frozenset()

    @property
    def axes(self) -> dict[str, int]:
        """Sizes by name."""
        return {f"x{index}": value for index, value in enumerate(self.point)}

    @property
    def key(self) -> str:
        """Key of the point."""
        return class_key(self.axes)


@dataclass(frozen=True)
class Plot:
    """Spots and, per key, who won: A, B or nobody."""

    spots: tuple[Spot, ...]
    winners: tuple[tuple[str, str | None], ...]

    def winner(self, spot: Spot) -> str | None:
        """Who won the spot's key."""
        return dict(self.winners).get(spot.key)

    def measured(self, winner: str) -> list[Spot]:
        """Timed train spots of a winner."""
        return [item for item in self.spots if item.split == "train" and item.timed and self.winner(item) == winner]

    def vouches(self, spot: Spot, winner: str) -> bool:
        """True if the spot was a gate of some key that the winner won."""
        return any(dict(self.winners).get(key) == winner for key in spot.gates)

    def foreign(self, winner: str) -> list[Spot]:
        """Spots that say something else: other verdicts at train points, gates of such keys alone."""
        train = [item for item in self.spots if item.split == "train" and self.winner(item) != winner]
        gates = [item for item in self.spots if item.split != "train" and item.gates]
        return [*train, *(item for item in gates if not self.vouches(item, winner))]


def placed_of(plot: Plot) -> list[Placed]:
    """The plot's workloads."""
    return [_placed(item) for item in plot.spots]


def decisions_of(plot: Plot) -> list[Decision]:
    """One decision per key with a train point."""
    keys = {item.key for item in plot.spots if item.split == "train"}
    return [_decision(key, dict(plot.winners).get(key), plot.spots) for key in sorted(keys)]


def learnt(plot: Plot) -> list[LearntBox]:
    """The boxes of a plot."""
    return learn(decisions_of(plot), placed_of(plot))


def inside(box: LearntBox, point: Point) -> bool:
    """True if the box covers the point."""
    return all(box.axes[f"x{index}"][0] <= value <= box.axes[f"x{index}"][1] for index, value in enumerate(point))


def won_by(box: LearntBox) -> str:
    """The one winner of a box."""
    (winner,) = {item.solution_digest for item in box.decisions}
    assert winner is not None
    return winner


@cache
def _workload(spot: Spot) -> Workload:
    return Workload(definition_digest=DEFINITION, axes=spot.axes, inputs={}, structure_class=spot.split)


def _placed(spot: Spot) -> Placed:
    return Placed(workload=_workload(spot), split=spot.split, family=spot.key, weight=1.0)  # type: ignore[arg-type]


def _decision(key: str, winner: str | None, spots: tuple[Spot, ...]) -> Decision:
    train = [item for item in spots if item.split == "train" and item.key == key]
    gates = [item for item in spots if key in item.gates]
    timed = [item for item in train if item.timed]
    won = winner is not None and bool(timed)
    return Decision(
        snapshot_digest=SNAPSHOT, definition_digest=DEFINITION, definition="made_up", key=key, profile="full",
        box=KeyBox(definition_digest=DEFINITION, device_class=DEVICE, layout="contiguous", axes={}),
        verdict="promoted" if won else "kept_incumbent", solution_digest=winner if won else None,
        incumbent_digest=None, reason="made up", alpha=0.05, min_effect=0.01,
        workloads=tuple(_workload(item).digest for item in [*timed, *gates]) if timed else (),
    )  # fmt: skip


@st.composite
def plots(draw: st.DrawFn, axes: tuple[int, int] = (1, 4), largest: int = 9) -> Plot:
    """Up to a dozen distinct points; a winner per key; holdout and stress points that gate a few keys each."""
    count = draw(st.integers(*axes))
    points = draw(st.lists(st.tuples(*[st.integers(0, largest)] * count), min_size=1, max_size=12, unique=True))
    splits = draw(st.lists(st.sampled_from(["train", "train", "holdout", "holdout", "stress"]), min_size=len(points)))
    rough = [Spot(point, split) for point, split in zip(points, splits, strict=False)]
    keys = sorted({item.key for item in rough if item.split == "train"})
    winners = [(key, draw(st.sampled_from([A, A, A, B, None]))) for key in keys]
    spots = [
        Spot(item.point, item.split, timed=draw(st.integers(0, 5)) > 0)
        if item.split == "train"
        else Spot(item.point, item.split, gates=frozenset(draw(st.sets(st.sampled_from(keys))) if keys else ()))
        for item in rough
    ]
    timed = {item.key for item in spots if item.split == "train" and item.timed}
    return Plot(tuple(spots), tuple((key, winner if key in timed else None) for key, winner in winners))

"""On a device: what every call left behind, kept as it was handed over and judged together, to wait for it only once.

In: looks, call by call. Out: the first verdict, in the order of the calls. A snapshot is taken before the
next inputs exist, so that judging it later judges the same bytes.
"""

from collections.abc import Callable
from typing import Any

import torch

from fib_core.device import regions
from fib_core.device.look import Frame, Look, signs_of
from fib_core.device.verdict import Verdict, cheated

_HOST_BYTES_MAX = 1 << 16
"""Outputs up to this size are compared on the host: a kernel launch for each step of a comparison would cost more."""
_KEPT_BYTES_MAX = 1 << 30

Judge = Callable[[int, int, dict[str, Any]], Verdict | None]


class Review:
    """Calls of one bout that are still to be judged."""

    def __init__(self, layout: regions.Layout, frame: Frame) -> None:
        self._layout, self._frame = layout, frame
        self._calls: list[tuple[int, int, Look]] = []

    @property
    def full(self) -> bool:
        """Do the snapshots take so much memory that they must be judged now?"""
        return sum(look.kept_bytes for _, _, look in self._calls) > _KEPT_BYTES_MAX

    def add(self, number: int, chosen: int, look: Look) -> None:
        """Keep one call with its input set."""
        self._calls.append((number, chosen, look))

    def verdict(self, judge: Judge) -> Verdict | None:
        """The first call that is not right, if any; all are forgotten."""
        if not self._calls:
            return None
        calls, self._calls = self._calls, []
        signs = signs_of([look for _, _, look in calls], self._frame)
        on_host = self._layout.total_bytes <= _HOST_BYTES_MAX
        blocks = torch.stack([look.output for _, _, look in calls])
        blocks = blocks.cpu() if on_host else blocks
        for (mutated, overrun, late), (number, chosen, _), block in zip(signs, calls, blocks, strict=True):
            outputs = {slot.name: regions.view(block, slot) for slot in self._layout.slots}
            found = _of_signs(number, mutated, overrun, late) or judge(number, chosen, outputs)
            if found is not None:
                return found
        return None


def _of_signs(number: int, mutated: bool, overrun: bool, late: bool) -> Verdict | None:
    if late:
        return cheated("output_changed", f"an output of call {number - 1} changed after it was returned")
    if mutated:
        return cheated("input_mutated", f"an input of call {number} was written to")
    return cheated("red_zone", f"call {number} wrote outside its output") if overrun else None

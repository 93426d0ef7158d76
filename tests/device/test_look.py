"""A look at a device's memory says the same whether all of it is copied first or compared where it lies."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fib_core.device import look as looks
from fib_core.device.look import Frame, Parts, look, signs_of

INPUTS, OUTPUTS = 24, 16
RED = torch.tensor([index < 4 or index >= 12 for index in range(OUTPUTS)])
WRITES = st.lists(st.tuples(st.sampled_from(["input", "red", "output", "before"]), st.integers(0, 3)), max_size=4)


def _parts(writes: list[tuple[str, int]]) -> Parts:
    """Bytes after a call that wrote there; ``output`` is where it may write."""
    written, clean, then = (torch.arange(size, dtype=torch.uint8) for size in (INPUTS, OUTPUTS, OUTPUTS))
    fresh, output, before = written.clone(), clean.clone(), then.clone()
    for kind, place in writes:
        if kind == "input":
            fresh[place] += 1
        elif kind == "before":
            before[place] += 1
        else:
            output[place + (4 if kind == "output" else 0)] += 1
    return Parts(fresh, written, output, before, then)


def _signs(calls: list[Parts]) -> tuple[list[list[bool]], list[Any]]:
    frame = Frame(torch.arange(OUTPUTS, dtype=torch.uint8), RED)
    taken = [look(parts, frame) for parts in calls]
    for parts in calls:  # the next call's contents are in the same places by now
        for part in parts:
            part.fill_(255)
    return signs_of(taken, frame), [one.output for one in taken]


@pytest.mark.parametrize("limit", [0, 1 << 22], ids=["where it lies", "copied first"])
@given(calls=st.lists(WRITES, min_size=1, max_size=5))
def test_every_write_is_told_of_the_call_that_made_it_and_no_other(
    calls: list[list[tuple[str, int]]], limit: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looks, "_TOGETHER_BYTES_MAX", limit)
        signs, outputs = _signs([_parts(writes) for writes in calls])
    kinds = [{kind for kind, _ in writes} for writes in calls]
    # Writes wrap around at 256, which four of them cannot reach.
    assert signs == [["input" in kind, "red" in kind, "before" in kind] for kind in kinds]
    assert all(torch.equal(one, _parts(writes).output) for one, writes in zip(outputs, calls, strict=True))


def test_what_is_held_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Frame(torch.arange(OUTPUTS, dtype=torch.uint8), RED)
    assert look(_parts([]), frame).kept_bytes == 2 * INPUTS + 3 * OUTPUTS
    monkeypatch.setattr(looks, "_TOGETHER_BYTES_MAX", 0)
    assert look(_parts([]), frame).kept_bytes == OUTPUTS

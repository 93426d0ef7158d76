"""What a call on a device left in memory: one copy of it all, compared later with all others' at once.

In: byte tensors of the device. Out: looks, and of many looks three truth values each. A kernel launch costs more than
the bytes of a small workload; what is large is compared where it lies, and only the truth values are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

_TOGETHER_BYTES_MAX = 1 << 22


class Parts(NamedTuple):
    """Bytes after a call: inputs as they are and as they were written, outputs, those of the call before twice."""

    fresh: Any
    written: Any
    output: Any
    before: Any
    then: Any


@dataclass(frozen=True)
class Frame:
    """What an output block looks like that nobody wrote to, and where nobody may write."""

    clean: Any
    red: Any

    def signs(self, parts: Parts) -> Any:
        """Of parts with a leading axis of n calls: inputs written, red zone overrun, output before changed: [n, 3]."""
        mutated = (parts.fresh != parts.written).any(1)
        overrun = ((parts.output != self.clean) & self.red).any(1)
        return torch.stack([mutated, overrun, (parts.before != parts.then).any(1)], dim=1)


@dataclass(frozen=True)
class Look:
    """One call: its output bytes, and either the copy of everything or what the comparison said."""

    output: Any
    together: Any | None
    signs: Any | None
    sizes: tuple[int, ...]

    @property
    def kept_bytes(self) -> int:
        """Memory that it holds."""
        return int((self.output if self.together is None else self.together).nbytes)


def look(parts: Parts, frame: Frame) -> Look:
    """Take it now: the next call may change everything."""
    sizes = tuple(part.numel() for part in parts)
    if sum(sizes) > _TOGETHER_BYTES_MAX:
        signs = frame.signs(Parts(*(part[None] for part in parts)))
        return Look(parts.output.clone(), None, signs, sizes)
    together = torch.cat(parts)
    return Look(together.split(sizes)[2], together, None, sizes)


def signs_of(looks: Sequence[Look], frame: Frame) -> list[list[bool]]:
    """Of every call: inputs written, red zone overrun, output of the call before changed. Waits for the device once."""
    if looks[0].together is None:
        signs = torch.cat([one.signs for one in looks])
    else:
        every = torch.stack([one.together for one in looks])
        signs = frame.signs(Parts(*every.split(looks[0].sizes, dim=1)))
    found: list[list[bool]] = signs.tolist()
    return found

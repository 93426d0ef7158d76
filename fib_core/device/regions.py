"""Shared memory between referee and candidate: sealed memfds with tensors at fixed places.

In: names, dtypes, shapes. Out: slots (places), descriptors, tensors over the mapping. Knows nothing of what they mean.
"""

import fcntl
import math
import mmap
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fib_core.errors import UnsupportedInput

_ALIGN = 256  # wider than any vector register or cache line, so that every tensor starts alike
_PADDING = 8  # elements: what a slice of a wider tensor may have, still aligned for vectors of its type
GUARD_BYTES = 256
"""Red zone before the first, between and behind all tensors of a block; whoever writes there wrote out of bounds."""
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_DTYPES = {
    "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16,
    "float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2,
    "int64": torch.int64, "int32": torch.int32, "int16": torch.int16, "int8": torch.int8, "bool": torch.bool,
}  # fmt: skip


@dataclass(frozen=True)
class Slot:
    """Place of one tensor in a region."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    padding: int = 0
    """Elements between the end of a row (last axis) and the start of the next."""

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements, row-major."""
        strides, step = [], 1
        for place, size in enumerate(reversed(self.shape)):
            strides.append(step)
            step *= size + (self.padding if place == 0 else 0)
        return tuple(reversed(strides))

    @property
    def size_bytes(self) -> int:
        """Bytes from the first element to the last, padding between rows included."""
        count = math.prod(self.shape)
        last = sum((size - 1) * step for size, step in zip(self.shape, self.strides, strict=True)) if count else -1
        return (last + 1) * int(torch_dtype(self.dtype).itemsize)


@dataclass(frozen=True)
class Layout:
    """Slots of one region and the bytes that it needs."""

    slots: tuple[Slot, ...]
    total_bytes: int

    @property
    def guards(self) -> list[tuple[int, int]]:
        """(start, end) of every stretch that belongs to no tensor."""
        edges = [0, *(edge for slot in self.slots for edge in (slot.offset, slot.offset + slot.size_bytes))]
        return [(a, b) for a, b in zip(edges[::2], [*edges[1::2], self.total_bytes], strict=True) if a < b]


def torch_dtype(name: str) -> Any:
    """Torch's dtype of a schema dtype name."""
    if name not in _DTYPES:
        raise UnsupportedInput(f"dtype {name} cannot be held by a tensor on this device")
    return _DTYPES[name]


def plan(tensors: Iterable[tuple[str, str, tuple[int, ...]]], padded: Collection[str] = ()) -> Layout:
    """Lay (name, dtype, shape) triples out one after the other, red zones around each; ``padded`` ones as slices."""
    slots, offset = [], GUARD_BYTES
    for name, dtype, shape in tensors:
        shift = _PADDING * torch_dtype(dtype).itemsize if name in padded else 0
        slot = Slot(name, dtype, shape, offset + shift, _PADDING if name in padded else 0)
        slots.append(slot)
        offset += -(-(shift + slot.size_bytes + GUARD_BYTES) // _ALIGN) * _ALIGN
    return Layout(tuple(slots), max(offset, _ALIGN))


def create(total_bytes: int) -> int:
    """A fresh anonymous region; sealed, so that no other holder can shrink it under our feet (SIGBUS)."""
    fd = os.memfd_create("fib", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, total_bytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    return fd


def written(parts: Sequence[Any]) -> int:
    """A file with these byte tensors of the host, one after the other. Raises ``OSError`` where there is no room."""
    fd = os.memfd_create("fib", os.MFD_CLOEXEC)
    try:
        done = os.writev(fd, [part.numpy() for part in parts])
        if done != sum(part.nbytes for part in parts):
            raise OSError(f"only {done} bytes could be written to memory")
    except OSError:
        os.close(fd)
        raise
    return fd


def attach(fd: int, total_bytes: int) -> Any:
    """Map a region as bytes, pages faulted in now, so that no timed call pays for that."""
    return torch.frombuffer(mmap.mmap(fd, total_bytes, mmap.MAP_SHARED | mmap.MAP_POPULATE), dtype=torch.uint8)


def view(region: Any, slot: Slot, base: int = 0) -> Any:
    """The tensor in ``slot``, ``base`` bytes into the region."""
    dtype = torch_dtype(slot.dtype)
    if slot.size_bytes == 0:
        return torch.empty(slot.shape, dtype=dtype, device=region.device)
    start = base + slot.offset
    return region[start : start + slot.size_bytes].view(dtype).as_strided(slot.shape, slot.strides)


def bytes_of(tensor: Any) -> Any:
    """A contiguous tensor's memory as uint8, for bitwise comparison and poisoning."""
    return tensor.reshape(-1).view(torch.uint8)


def same_bytes(one: Any, other: Any) -> bool:
    """Equality of two byte tensors whose length is a multiple of eight: eight bytes a comparison."""
    return bool(torch.equal(one.view(torch.int64), other.view(torch.int64)))

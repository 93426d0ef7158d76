"""The driver as Python sees it: load the library, hand it what it needs of torch, open it on a channel, let it serve.

Loaded in the fork server, before any contestant's code exists. Python never sees the channel's key.
"""

import ctypes
import json
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from fib_core.device import wire
from fib_core.device.device_clock import DeviceClock

_TRACEBACK_CHARS = 4000
_library: Any = None


def load(path: Path) -> None:
    """Load the library into this process; children inherit it. PyDLL: the driver calls Python with the lock held."""
    global _library  # noqa: PLW0603 (one library a process, inherited by fork)
    library = ctypes.PyDLL(str(path))
    library.fib_driver_open.restype = ctypes.c_void_p
    library.fib_driver_open.argtypes = [ctypes.c_int, ctypes.py_object]
    library.fib_driver_join.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.fib_driver_use_cuda.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
    library.fib_driver_serve.argtypes = [ctypes.c_void_p, ctypes.py_object]
    library.fib_digest.restype = ctypes.c_uint64
    library.fib_digest.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64]
    library.fib_tag.restype = ctypes.c_uint64
    library.fib_tag.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    _library = library


def tag(key: bytes, message: bytes) -> int:
    """SipHash-2-4 of a message."""
    return int(_library.fib_tag(key, message, len(message)))


def digest(addresses: Iterable[tuple[int, int]]) -> int:
    """What an answer says about outputs that lie at these (address, bytes)."""
    value = 0
    for address, size in addresses:
        value = int(_library.fib_digest(address, size, value))
    return value


class Driver:
    """A driver on one socket. Everything of torch that it will use is captured now."""

    def __init__(self, fd: int, clock: DeviceClock | None = None) -> None:
        base = torch._C.TensorBase
        self._captured = (
            torch._C._from_dlpack, torch._C._to_dlpack, torch.Tensor, tuple, list, base.view,
            base.__dict__["dtype"].__get__, tuple(getattr(torch, name) for name in wire.DTYPES), torch.uint8,
            (torch.default_generator.manual_seed, *(clock.generators if clock else ())), describe,
            torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack,
        )  # fmt: skip
        self._handle = _library.fib_driver_open(fd, self._captured)
        if not self._handle:
            raise EOFError("the referee did not send a key")
        if clock is not None and _library.fib_driver_use_cuda(self._handle, str(clock.library).encode(), clock.index):
            raise OSError(f"{clock.library} or libcuda lacks a function that the driver needs")
        self._serve, self._join = _library.fib_driver_serve, _library.fib_driver_join

    def join(self, fd: int) -> None:
        """Talk to another referee from now on (a process that is kept between visits)."""
        if self._join(self._handle, fd) != 0:
            raise EOFError("the referee did not send a key")

    def serve(self, entry: Any) -> None:
        """Make the calls of one workload as the referee orders them; returns when it says so or is gone."""
        self._serve(self._handle, entry)


def failure_of(error: BaseException) -> dict[str, str]:
    """What a contestant's exception means. Torch's CPU allocator has no exception type of its own, only a message."""
    text = f"{type(error).__name__}: {error}"
    exhausted = isinstance(error, MemoryError) or "DefaultCPUAllocator" in text or "bad_alloc" in text
    rule = "memory_limit" if exhausted else "exit" if isinstance(error, SystemExit) else "exception"
    log = "".join(traceback.format_exception(error, limit=-8))
    return {"rule": rule, "message": text[:500], "log": log[-_TRACEBACK_CHARS:]}


def describe(error: BaseException) -> bytes:
    """:func:`failure_of` as JSON, for the driver to send."""
    return json.dumps(failure_of(error)).encode()

"""Where the tensors of a bout live: sealed shared memory of the host, or memory of a CUDA device opened over IPC.

In: sizes in bytes. Out: byte tensors of this process, and what the other process needs to open the same memory.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import torch

from fib_core.device import regions
from fib_core.device.channel import close_all
from fib_core.device.faults import RefereeFailed

_HANDLE_BYTES = 64


@dataclass
class Opened:
    """Regions: tensors here; descriptors or handles for the other side."""

    tensors: list[Any]
    fds: list[int]
    handles: bytes

    @property
    def outlives_mapping(self) -> bool:
        """Must it stay for as long as the other process has it open?"""
        return False

    def close(self) -> None:
        """Give the descriptors back; the mappings go with the tensors."""
        close_all(self.fds)
        self.fds = []


class HostMemory:
    """Memory files that cross a socket."""

    device = "cpu"

    def open(self, sizes: tuple[int, ...]) -> Opened:
        """Fresh zeroed regions."""
        fds = [regions.create(size) for size in sizes]
        return Opened([regions.attach(fd, size) for fd, size in zip(fds, sizes, strict=True)], fds, b"")

    def settle(self) -> None:
        """What was written is visible to the other process at once."""


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * _HANDLE_BYTES)]


class _OpenedOnDevice(Opened):
    """Allocations of the driver's own, outside torch's pool: their handles name exactly one region each."""

    def __init__(self, cuda: Any, addresses: list[int], sizes: tuple[int, ...], handles: bytes, device: str) -> None:
        super().__init__([_tensor_at(a, size, device) for a, size in zip(addresses, sizes, strict=True)], [], handles)
        self._cuda, self._addresses = cuda, addresses

    @property
    def outlives_mapping(self) -> bool:
        return True  # CUDA leaves undefined what a process sees of memory that its owner has freed

    def close(self) -> None:
        self.tensors = []
        for address in self._addresses:
            self._cuda.cuMemFree_v2(ctypes.c_ulonglong(address))
        self._addresses = []


class CudaMemory:
    """Device memory that crosses as IPC handles."""

    def __init__(self, index: int) -> None:
        self.device = f"cuda:{index}"
        torch.cuda.set_device(index)
        torch.cuda.init()
        self._cuda = ctypes.CDLL("libcuda.so.1")

    def open(self, sizes: tuple[int, ...]) -> Opened:
        """Fresh regions; raises ``RefereeFailed`` if the device has no room."""
        torch.cuda.synchronize()
        addresses, handles = [], b""
        for size in sizes:
            address, handle = ctypes.c_ulonglong(), _Handle()
            code = self._cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
            code = code or self._cuda.cuIpcGetMemHandle(ctypes.byref(handle), address)
            if code != 0:
                raise RefereeFailed(f"cannot share {size} bytes of {self.device} (CUresult {code})")
            addresses.append(address.value)
            handles += bytes(handle)
        return _OpenedOnDevice(self._cuda, addresses, sizes, handles, self.device)

    def settle(self) -> None:
        """Wait until what was written is there for the other process."""
        torch.cuda.synchronize()


class _At:
    """Device memory in the form that torch adopts without a copy."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}


def _tensor_at(address: int, size: int, device: str) -> Any:
    return torch.as_tensor(_At(address, size), device=device)


def memory_of(device: str) -> HostMemory | CudaMemory:
    """``cpu`` or ``cuda:INDEX``."""
    return HostMemory() if device == "cpu" else CudaMemory(int(device.partition(":")[2]))

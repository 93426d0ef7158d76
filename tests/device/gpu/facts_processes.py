"""Measures what a fresh process costs on a CUDA host: fork to first kernel, borrowed tensors, bytes from shared memory.

Expects a parent that has imported torch and not touched CUDA.
"""

import mmap
import multiprocessing as mp
import os
import pickle
import time
from collections.abc import Callable
from typing import Any

import torch
from forks import in_fork
from torch.multiprocessing.reductions import reduce_tensor

_MIB = 1 << 20


def first_kernel(forked_at: float) -> dict[str, float]:
    """Milliseconds since the fork at which the child runs, has a context, has finished a kernel."""
    marks = {"running": time.monotonic()}
    torch.cuda.init()
    torch.cuda.current_stream().synchronize()
    marks["context"] = time.monotonic()
    torch.ones(16, device="cuda").add_(1)
    torch.cuda.synchronize()
    marks["kernel"] = time.monotonic()
    return {name: round((mark - forked_at) * 1e3, 1) for name, mark in marks.items()}


def forks(count: int = 5) -> dict[str, Any]:
    """``count`` children one after the other; the parent must stay untouched by CUDA."""
    children = []
    for _ in range(count):
        forked_at = time.monotonic()
        children.append(in_fork(lambda at=forked_at: first_kernel(at)))  # type: ignore[misc]
    return {"ms_since_fork": children, "parent_initialised_cuda": torch.cuda.is_initialized()}


def borrowed(guises: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Tensors of one process mapped by others in several guises, all forked from here (CUDA IPC by torch)."""
    ours, theirs = mp.Pipe()
    go_read, go_write = os.pipe()

    def lend() -> dict[str, Any]:
        tensors = {size: torch.full((size * _MIB // 4,), 3.0, device="cuda") for size in (1, 64, 1024)}
        torch.cuda.synchronize()
        ours.send_bytes(pickle.dumps([(size, reduce_tensor(tensor)) for size, tensor in tensors.items()]))
        os.read(go_read, 1)
        return {str(size): round(float(tensor[0]), 1) for size, tensor in tensors.items()}

    pid = os.fork()
    if pid == 0:
        try:
            lend()
        finally:
            os._exit(0)
    loans = pickle.loads(theirs.recv_bytes())  # noqa: S301 (our own child wrote it)
    facts = {name: in_fork(lambda before=before: _borrow(loans, before), 90) for name, before in guises.items()}  # type: ignore[misc]
    os.write(go_write, b"x")
    os.waitpid(pid, 0)
    return facts


def _borrow(loans: list[Any], before: Callable[[], Any]) -> dict[str, Any]:
    before()
    torch.ones(1, device="cuda")
    torch.cuda.synchronize()
    facts: dict[str, Any] = {}
    for size, (rebuild, arguments) in loans:
        started = time.perf_counter()
        tensor = rebuild(*arguments)
        torch.cuda.synchronize()
        facts[f"open_{size}_mib_ms"] = round((time.perf_counter() - started) * 1e3, 3)
        facts[f"value_{size}"] = float(tensor[-1])
        tensor[0] = 4.0
    torch.cuda.synchronize()
    return facts


def shared_memory(megabytes: int = 256) -> dict[str, Any]:
    """Host bytes from a memfd to the device and back: pageable, and registered (and what that costs)."""
    size = megabytes * _MIB
    fd = os.memfd_create("probe")
    os.ftruncate(fd, size)
    place = mmap.mmap(fd, size)
    host = torch.frombuffer(place, dtype=torch.uint8)
    host.fill_(1)
    device = torch.empty(size, dtype=torch.uint8, device="cuda")
    facts = {"megabytes": megabytes, "pageable": _copies(host, device)}
    runtime = torch.cuda.cudart()
    started = time.perf_counter()
    code = int(runtime.cudaHostRegister(host.data_ptr(), size, 0))
    facts["register_ms"] = round((time.perf_counter() - started) * 1e3, 2)
    facts["register_code"] = code
    if code == 0:
        facts["registered"] = _copies(host, device)
        started = time.perf_counter()
        runtime.cudaHostUnregister(host.data_ptr())
        facts["unregister_ms"] = round((time.perf_counter() - started) * 1e3, 2)
    return facts


def _copies(host: torch.Tensor, device: torch.Tensor) -> dict[str, float]:
    facts = {}
    for name, target, source in (("to_device", device, host), ("to_host", host, device)):
        times = []
        for _ in range(4):
            torch.cuda.synchronize()
            started = time.perf_counter()
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - started)
        facts[f"{name}_gb_per_s"] = round(host.numel() / sorted(times)[1] / 1e9, 2)
    small_host, small_device = host[:4096], device[:4096]
    times = []
    for _ in range(20):
        started = time.perf_counter()
        small_device.copy_(small_host)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    facts["4_kib_to_device_us"] = round(sorted(times)[10] * 1e6, 1)
    return facts


def address_space() -> dict[str, int]:
    """Virtual size of this process before and after it touches CUDA, in MiB."""
    before = _status("VmSize")
    torch.ones(1, device="cuda")
    torch.cuda.synchronize()
    return {"before_mib": before, "after_mib": _status("VmSize"), "resident_mib": _status("VmRSS")}


def _status(field: str) -> int:
    with open("/proc/self/status") as lines:  # noqa: PTH123 (a kernel's table)
        return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(field + ":"))

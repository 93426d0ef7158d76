"""CUDA works in a confined candidate: its own start, kernels, memory of another process, Triton's compiler."""

import ctypes
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from forked import confined, free

from fib_core.device.scratch import settle

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no CUDA device"),
]
LIMITS: dict[str, Any] = {"address_space": False, "memory_bytes": 64 << 30}
KERNEL = """
import triton
import triton.language as tl

@triton.jit
def double(a, b, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(b + at, 2 * tl.load(a + at, mask=at < n), mask=at < n)
"""


class Handle(ctypes.Structure):
    """cudaIpcMemHandle_t, which travels by value."""

    _fields_ = [("reserved", ctypes.c_char * 64)]


def runtime() -> ctypes.CDLL:
    """The CUDA runtime that torch loaded."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return ctypes.CDLL(next(line.split()[-1] for line in lines if "libcudart" in line))


def operators() -> float:
    import torch

    x = torch.ones(1024, 1024, device="cuda", dtype=torch.bfloat16)
    with torch.cuda.stream(torch.cuda.Stream()):
        total = (x @ x).float().sum()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    torch.nn.functional.rms_norm(x, (1024,))
    end.record()
    torch.cuda.synchronize()
    assert start.elapsed_time(end) > 0
    pinned = torch.empty(1024).pin_memory()
    pinned.copy_(x[0].float(), non_blocking=True)
    return float(total.item())


@pytest.mark.parametrize("local_sockets", [False, True])
def test_operators_run_on_the_device(tmp_path: Path, local_sockets: bool) -> None:
    assert free(operators) == 1024.0**3
    assert confined(operators, tmp_path, local_sockets=local_sockets, **LIMITS) == 1024.0**3


def owner(handle_to: int, until: int) -> None:
    """A referee's part: memory, its handle, and at the end whether the other process wrote there."""
    import torch

    memory = torch.full((4096,), 7.0, device="cuda")
    torch.cuda.synchronize()
    handle, base = Handle(), memory.data_ptr()
    assert runtime().cudaIpcGetMemHandle(ctypes.byref(handle), ctypes.c_void_p(base)) == 0
    os.write(handle_to, bytes(handle))
    os.read(until, 1)


def visitor(handle: bytes) -> float:
    import torch

    torch.zeros(1, device="cuda")
    address = ctypes.c_void_p()
    code = runtime().cudaIpcOpenMemHandle(ctypes.byref(address), Handle.from_buffer_copy(handle), 1)
    assert code == 0, f"cudaIpcOpenMemHandle says {code}"
    here = torch.zeros(1, device="cuda")
    assert runtime().cudaMemcpy(ctypes.c_void_p(here.data_ptr()), address, ctypes.c_size_t(4), 3) == 0
    return float(here.item())


@pytest.mark.parametrize("local_sockets", [False, True])
def test_memory_of_another_process_is_mapped(tmp_path: Path, local_sockets: bool) -> None:
    import torch  # noqa: F401 (the children find it loaded)

    read, write = os.pipe()
    wait, release = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            owner(write, wait)
        finally:
            os._exit(0)
    os.close(write)
    try:
        handle = os.read(read, 64)
        assert len(handle) == 64
        assert free(lambda: visitor(handle)) == 7.0
        assert confined(lambda: visitor(handle), tmp_path, local_sockets=local_sockets, **LIMITS) == 7.0
    finally:
        os.write(release, b"x")
        os.waitpid(pid, 0)


def triton_kernel(directory: Path) -> bool:
    settle(directory)
    import torch

    (directory / "kernel.py").write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("kernel", directory / "kernel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    a, b = torch.arange(100.0, device="cuda"), torch.zeros(100, device="cuda")
    module.double[(2,)](a, b, 100, BLOCK=64)
    return bool((b == 2 * a).all())


def test_triton_compiles_below_the_scratch(tmp_path: Path) -> None:
    assert confined(lambda: triton_kernel(tmp_path), tmp_path, **LIMITS) is True
    assert any((tmp_path / "triton").iterdir())


def profiled() -> bool:
    import torch

    x = torch.ones(1024, 1024, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        x @ x
        torch.cuda.synchronize()
    return any(event.device_time_total > 0 for event in found.key_averages())


def test_the_profilers_clock_sees_kernels(tmp_path: Path) -> None:
    assert free(profiled) is True
    assert confined(profiled, tmp_path, **LIMITS) is True

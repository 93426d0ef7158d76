"""What NVIDIA devices this host has, asked without CUDA: a process that has touched CUDA cannot fork any more.

In: an index or a UUID. Out: a :class:`Gpu`. The answers come from NVML (``pynvml``), else from ``nvidia-smi``.
NVML was seen to leave a thread behind, so a fork server asks it nothing either; its children may.
"""

import importlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from fib_core.builders.toolchain import ToolchainMissing

QUERY = "index,uuid,name,compute_cap,driver_version,memory.total,memory.used,clocks.sm,clocks.max.sm"
_MIB = 1 << 20
_ASK_S = 30


@dataclass(frozen=True)
class Gpu:
    """One device, as its driver describes it now (clock and used memory change from call to call)."""

    index: int
    uuid: str
    name: str
    capability: tuple[int, int]
    driver: str
    total_bytes: int
    used_bytes: int
    clock_mhz: float | None
    max_clock_mhz: float | None


def visible_gpu() -> Gpu:
    """The device that CUDA would number 0 in this process: the first that ``CUDA_VISIBLE_DEVICES`` names."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    return read_gpu(int(named) if named.isdigit() else named or 0)


def read_gpu(selector: int | str) -> Gpu:
    """By index as ``nvidia-smi`` counts, or by UUID; ``ToolchainMissing`` where there is none."""
    nvml = load_nvml()
    found = [_from_nvml(nvml, selector)] if nvml is not None else [
        gpu for gpu in parse_gpus(ask_smi(f"--query-gpu={QUERY}")) if selector in (gpu.index, gpu.uuid)
    ]  # fmt: skip
    if not found:
        raise ToolchainMissing(f"no CUDA device {selector!r} on this host, so cuda has no target; see nvidia-smi -L")
    return found[0]


def parse_gpus(text: str) -> list[Gpu]:
    """Rows of ``nvidia-smi --query-gpu=QUERY --format=csv,noheader,nounits``."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    return [_from_cells(row) for row in rows if len(row) == len(QUERY.split(","))]


def ask_smi(query: str) -> str:
    """Output of ``nvidia-smi`` for one query, as CSV without headers and units."""
    path = shutil.which("nvidia-smi")
    if path is None:
        raise ToolchainMissing("no CUDA device on this host: neither pynvml nor nvidia-smi finds a driver for cuda")
    command = [path, query, "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_S, check=False)
    return done.stdout if done.returncode == 0 else ""


def load_nvml() -> Any | None:
    """``pynvml``, initialised; None where it or the driver is missing."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def nvml_handle(nvml: Any, selector: int | str) -> Any:
    """NVML's handle of a device; ``ToolchainMissing`` where there is no such device."""
    try:
        if isinstance(selector, int):
            return nvml.nvmlDeviceGetHandleByIndex(selector)
        return nvml.nvmlDeviceGetHandleByUUID(selector)
    except nvml.NVMLError as error:
        raise ToolchainMissing(f"no CUDA device {selector!r}, so cuda has no target: {error}") from error


def _from_nvml(nvml: Any, selector: int | str) -> Gpu:
    handle = nvml_handle(nvml, selector)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)  # what nvidia-smi shows
    return Gpu(
        index=nvml.nvmlDeviceGetIndex(handle),
        uuid=nvml.nvmlDeviceGetUUID(handle),
        name=nvml.nvmlDeviceGetName(handle),
        capability=(major, minor),
        driver=nvml.nvmlSystemGetDriverVersion(),
        total_bytes=memory.total,
        used_bytes=memory.used,
        clock_mhz=float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        max_clock_mhz=float(nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
    )


def _from_cells(cells: list[str]) -> Gpu:
    index, uuid, name, capability, driver, total, used, clock, max_clock = cells
    major, minor = capability.split(".")
    return Gpu(
        index=int(index), uuid=uuid, name=name, capability=(int(major), int(minor)), driver=driver,
        total_bytes=int(total) * _MIB, used_bytes=int(used) * _MIB,
        clock_mhz=_mhz(clock), max_clock_mhz=_mhz(max_clock),
    )  # fmt: skip


def _mhz(text: str) -> float | None:
    return float(text) if text.replace(".", "", 1).isdigit() else None

"""Facts about one CUDA device of this host, without torch and without touching CUDA in this process.

In: an index. Out: an :class:`Environment`, the clocks of the moment, who else uses the device, where CUPTI lies.
"""

import functools
import hashlib
import importlib.util
import os
import platform
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fib_core.builders import nvidia
from fib_core.builders.compile_cuda import nvcc, nvcc_version
from fib_core.builders.toolchain import ToolchainMissing, toolchain_name, version_of
from fib_core.errors import DeviceError
from fib_core.runtime.device_class import cuda_class
from schemas.environment import Environment

_LIBRARIES = ("torch", "triton", "apache-tvm-ffi", "numpy", "nvidia-cuda-cupti")
_THREADS = 1  # one host thread launches
_MIB = 1 << 20
_ASK_S = 60
# Asked of the driver in a process of its own; 16 is CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT.
_ASK_DRIVER = (
    "import ctypes; d = ctypes.CDLL('libcuda.so.1'); v, h, n = (ctypes.c_int() for _ in range(3));"
    "assert not d.cuInit(0); d.cuDriverGetVersion(ctypes.byref(v)); assert not d.cuDeviceGet(ctypes.byref(h), 0);"
    "assert not d.cuDeviceGetAttribute(ctypes.byref(n), 16, h); print(v.value, n.value)"
)
_CUPTI_PLACES = ("lib64/libcupti.so", "extras/CUPTI/lib64/libcupti.so")


@dataclass(frozen=True)
class Others:
    """Who else is on a device. ``mapped``: False where a process id means nothing here, so that none can be excused."""

    count: int
    used_bytes: int
    device_used_bytes: int
    mapped: bool


def describe_cuda(index: int) -> Environment:
    """The environment that every candidate on this device meets; ``clock_mhz`` is the highest, as for a CPU."""
    gpu = _gpu(index)
    cuda, sm_count = _driver_facts(gpu.uuid)
    host = hashlib.sha256(socket.gethostname().encode()).hexdigest()
    versions = {name: version_of(name) for name in _LIBRARIES}
    python = platform.python_version()
    return Environment(
        device_class=cuda_class(gpu.capability, sm_count, gpu.name),
        device_id=gpu.uuid,
        device_name=gpu.name,
        hostname_digest=host,
        driver=gpu.driver,
        clock_mhz=gpu.max_clock_mhz,
        threads=_THREADS,
        python=python,
        libraries={"python": python, "cuda-driver": cuda} | {name: text for name, text in versions.items() if text},
        toolchain=_toolchain(),
    )


def current_clock_mhz(device_id: str) -> float | None:
    """The multiprocessors' clock now; None where the driver does not say."""
    return _gpu(device_id).clock_mhz


def other_processes(device_id: str, ours: frozenset[int] = frozenset()) -> Others:
    """Processes on the device by UUID, without ``ours``; their memory, and all that is used by anybody."""
    found = _processes(device_id)
    others = [(pid, used) for pid, used in found if pid not in ours]
    mapped = all(Path(f"/proc/{pid}").exists() for pid, _ in found)
    return Others(len(others), sum(used for _, used in others), _gpu(device_id).used_bytes, mapped)


def parse_processes(text: str, device_id: str) -> list[tuple[int, int]]:
    """(pid, bytes) from ``nvidia-smi --query-compute-apps=gpu_uuid,pid,used_memory``; 0 where memory is not said."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
    mine = [row for row in rows if len(row) == 3 and row[0] == device_id]
    return [(int(pid), int(used) * _MIB if used.isdigit() else 0) for _, pid, used in mine]


def find_cupti() -> Path | None:
    """The CUPTI that this process has loaded, else torch's, else the toolkit's: two of them must not meet."""
    loaded = re.search(r"(/\S*libcupti\.so\S*)$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    first = [Path(loaded.group(1))] if loaded else []
    return next((path for path in first + _cupti_places() if path.exists()), None)


def _cupti_places() -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []
    patterns = ("cu*/lib/libcupti.so.*", "cuda_cupti/lib/libcupti.so.*")
    wheels = [path for root in roots for pattern in patterns for path in sorted(root.glob(pattern))]
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    return wheels + [toolkit / place for place in _CUPTI_PLACES]


def _gpu(selector: int | str) -> nvidia.Gpu:
    try:
        return nvidia.read_gpu(selector)
    except ToolchainMissing as error:
        raise DeviceError(str(error)) from error


def _processes(device_id: str) -> list[tuple[int, int]]:
    nvml = nvidia.load_nvml()
    if nvml is None:
        return parse_processes(nvidia.ask_smi("--query-compute-apps=gpu_uuid,pid,used_memory"), device_id)
    found = nvml.nvmlDeviceGetComputeRunningProcesses(nvidia.nvml_handle(nvml, device_id))
    return [(process.pid, process.usedGpuMemory or 0) for process in found]


@functools.cache
def _driver_facts(device_id: str) -> tuple[str, int]:
    """CUDA version of the driver and the number of multiprocessors."""
    command = [sys.executable, "-I", "-c", _ASK_DRIVER]
    place = os.environ | {"CUDA_VISIBLE_DEVICES": device_id}
    done = subprocess.run(command, env=place, capture_output=True, text=True, timeout=_ASK_S, check=False)
    if done.returncode != 0:
        raise DeviceError(f"the CUDA driver does not answer for {device_id}: {done.stderr.strip()[-300:]}")
    version, count = (int(word) for word in done.stdout.split())
    return f"{version // 1000}.{version % 1000 // 10}", count


def _toolchain() -> str | None:
    try:
        compiler = f"nvcc {nvcc_version(nvcc())}"
    except ToolchainMissing:
        compiler = None
    return "; ".join(name for name in (compiler, toolchain_name()) if name) or None

"""What changes on a device from visit to visit: read where a driver answers, left out where it does not."""

import subprocess
from typing import Any

import pytest

from fib_core.builders import nvidia
from fib_core.device import conditions as module
from fib_core.device.conditions import conditions, count_others
from fib_core.device.environment_cuda import Others
from fib_core.errors import DeviceError
from schemas.environment import Conditions, Environment

CPU = Environment(
    device_class="x86-64-v4/1t", device_id="cpu0", device_name="a cpu", hostname_digest="sha256:" + "0" * 64,
    threads=1, python="3.11", libraries={},
)  # fmt: skip
GPU = CPU.model_copy(update={"device_class": "sm_90a/132/hbm3e", "device_id": "GPU-1", "clock_mhz": 1980.0})


def test_a_cuda_device_tells_its_clock_and_who_else_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "current_clock_mhz", lambda device_id: 1755.0)
    monkeypatch.setattr(module, "other_processes", lambda device_id: Others(2, 12, 2000, True))
    assert count_others(GPU) == 2
    assert conditions(GPU, 2) == Conditions(clock_mhz=1755.0, other_processes=2)


def test_a_cpu_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(device_id: str) -> Any:
        raise AssertionError(device_id)

    monkeypatch.setattr(module, "current_clock_mhz", ask)
    monkeypatch.setattr(module, "other_processes", ask)
    assert count_others(CPU) is None
    assert conditions(CPU, None) is None


class _Refused(Exception):
    """Stands for NVML's own error."""


class _Nvml:
    NVMLError = _Refused


@pytest.mark.parametrize(
    "error", [_Refused("no permission"), DeviceError("gone"), subprocess.TimeoutExpired("nvidia-smi", 30)]
)
def test_a_driver_that_refuses_leaves_the_reading_out(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(device_id: str) -> Any:
        raise error

    monkeypatch.setattr(nvidia, "load_nvml", lambda: _Nvml)
    monkeypatch.setattr(module, "current_clock_mhz", refuse)
    monkeypatch.setattr(module, "other_processes", refuse)
    assert count_others(GPU) is None
    assert conditions(GPU, None) == Conditions()


def test_a_mistake_of_ours_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(device_id: str) -> Any:
        raise TypeError(device_id)

    monkeypatch.setattr(nvidia, "load_nvml", lambda: None)
    monkeypatch.setattr(module, "other_processes", broken)
    with pytest.raises(TypeError):
        count_others(GPU)

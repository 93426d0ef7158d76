"""Facts about a CUDA device: what nvidia-smi printed is read right; a live device describes itself consistently."""

import os
from typing import Any

import pytest
import torch
from facts_sandbox import work
from forks import in_fork

from fib_core.builders import nvidia
from fib_core.builders.toolchain import ToolchainMissing
from fib_core.device import environment_cuda
from fib_core.errors import DeviceError

UUID = "GPU-6bce6672-7905-db64-9d45-708e32d15d02"
# Printed by nvidia-smi 580.159.04 on an H200.
GPUS = f"0, {UUID}, NVIDIA H200, 9.0, 580.159.04, 143771, 0, 1980, 1980\n"


def test_the_query_that_is_asked_is_the_one_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = nvidia.parse_gpus(GPUS)
    assert found == [nvidia.Gpu(0, UUID, "NVIDIA H200", (9, 0), "580.159.04", 143771 << 20, 0, 1980.0, 1980.0)]
    monkeypatch.setattr(nvidia, "load_nvml", lambda: None)
    monkeypatch.setattr(nvidia, "ask_smi", lambda query: GPUS)
    for selector in (0, UUID):
        assert nvidia.read_gpu(selector) == found[0]
    for selector in (1, "GPU-0"):
        with pytest.raises(ToolchainMissing, match="nvidia-smi -L"):
            nvidia.read_gpu(selector)


def test_what_a_driver_does_not_say_is_absent_and_rubbish_is_no_device() -> None:
    silent = nvidia.parse_gpus(GPUS.replace("1980, 1980", "[N/A], [Not Supported]"))[0]
    assert (silent.clock_mhz, silent.max_clock_mhz) == (None, None)
    assert nvidia.parse_gpus("No devices were found\n") == []


def test_the_visible_device_is_the_first_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(nvidia, "read_gpu", asked.append)
    for value in ("", "3,1", f"{UUID},0"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        nvidia.visible_gpu()
    assert asked == [0, 3, UUID]


def test_processes_of_other_devices_do_not_count() -> None:
    text = f"{UUID}, 4242, 1076\nGPU-other, 17, 99\n{UUID}, 17, [N/A]\n"
    assert environment_cuda.parse_processes(text, UUID) == [(4242, 1076 << 20), (17, 0)]
    assert environment_cuda.parse_processes("", UUID) == []


def test_our_own_processes_are_excused_and_unknown_ids_are_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = nvidia.parse_gpus(GPUS.replace("143771, 0", "143771, 2000"))[0]
    monkeypatch.setattr(environment_cuda, "_gpu", lambda selector: gpu)
    monkeypatch.setattr(environment_cuda, "_processes", lambda device_id: [(os.getpid(), 5), (os.getppid(), 7)])
    assert environment_cuda.other_processes(UUID) == environment_cuda.Others(2, 12, 2000 << 20, True)
    ours = frozenset({os.getpid()})
    assert environment_cuda.other_processes(UUID, ours) == environment_cuda.Others(1, 7, 2000 << 20, True)
    monkeypatch.setattr(environment_cuda, "_processes", lambda device_id: [(1 << 30, 7)])
    assert environment_cuda.other_processes(UUID, ours) == environment_cuda.Others(1, 7, 2000 << 20, False)


def test_a_host_without_a_device_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "load_nvml", lambda: None)
    monkeypatch.setattr(nvidia.shutil, "which", lambda name: None)
    with pytest.raises(DeviceError, match="no CUDA device"):
        environment_cuda.describe_cuda(0)


@pytest.mark.gpu
def test_nvml_and_nvidia_smi_tell_of_the_same_device(monkeypatch: pytest.MonkeyPatch) -> None:
    by_nvml = nvidia.read_gpu(0)
    monkeypatch.setattr(nvidia, "load_nvml", lambda: None)
    by_smi = nvidia.read_gpu(by_nvml.uuid)
    same = ("index", "uuid", "name", "capability", "driver", "max_clock_mhz")
    assert [getattr(by_smi, field) for field in same] == [getattr(by_nvml, field) for field in same]
    assert abs(by_smi.total_bytes - by_nvml.total_bytes) < 1 << 20


@pytest.mark.gpu
def test_the_class_that_is_described_is_the_class_that_torch_sees() -> None:
    from fib_core.runtime.device_class import cuda_class

    def seen() -> list[Any]:
        properties = torch.cuda.get_device_properties(0)
        capability = (properties.major, properties.minor)
        return [cuda_class(capability, properties.multi_processor_count, properties.name), str(properties.uuid)]

    described = environment_cuda.describe_cuda(0)
    device_class, uuid = in_fork(seen)
    assert described.device_class == device_class
    assert described.device_id.removeprefix("GPU-") == uuid
    assert described.libraries["cuda-driver"] >= (torch.version.cuda or "")
    assert "nvcc" in (described.toolchain or "")


@pytest.mark.gpu
def test_a_process_on_the_device_is_counted_and_its_own_is_not() -> None:
    device = nvidia.read_gpu(0).uuid

    def look() -> list[int]:
        work()
        everybody = environment_cuda.other_processes(device)
        others = environment_cuda.other_processes(device, frozenset({os.getpid()}))
        return [everybody.count, everybody.used_bytes, others.count, int(everybody.mapped)]

    count, used, without_us, mapped = in_fork(look)
    assert (count, without_us, mapped) == (1, 0, 1)
    assert used > 256 << 20

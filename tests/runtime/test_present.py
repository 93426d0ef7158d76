"""What a serving process knows of its own libraries and driver, and what it does not claim to know."""

from importlib.metadata import version

import pytest
import torch

from fib_core.index.staleness import Present
from fib_core.runtime.devices import Devices
from fib_core.runtime.present import driver_here, present_for, version_here
from fib_core.runtime.table import Table
from tests.runtime.callers import scaled
from tests.runtime.published import HERE, SCALE, index, modern, solution

TEXTS = {
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC": "535.104.05",
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86  Release Build\n": "570.86",
    "something else\n535.1": None,
    "": None,
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_driver_is_read_from_the_kernel_modules_own_line(tmp_path, text: str) -> None:
    place = tmp_path / "version"
    place.write_text(text)
    assert driver_here(place) == TEXTS[text]


def test_a_host_without_a_driver_knows_none(tmp_path) -> None:
    assert driver_here(tmp_path / "nothing") is None


def test_only_what_is_installed_here_is_judged() -> None:
    made, _ = modern(scaled(), library_versions={"torch": "1", "no-such-library": "1", "python": "2.7"})
    present = present_for(made)
    assert present.libraries == {"torch": version("torch")}
    assert version_here("no-such-library") == "absent"
    assert (present.policy_version, present.definitions, present.solutions) == (None, None, None)


@pytest.mark.parametrize(("driver", "reason"), [("570.999", ""), ("580.1", "stale_driver"), (None, "")])
def test_another_driver_major_makes_a_miss_with_its_reason(driver: str | None, reason: str) -> None:
    chosen = solution(SCALE, "def run(x, gain):\n    return x\n")
    made, _ = modern(index((SCALE, [((2, 4), chosen)])), drivers=("570.86.15",))
    table = Table(made.definitions[0], SCALE, {chosen.digest_for(SCALE.digest): chosen}, Present(driver=driver))
    found = table.find({"rows": 3}, HERE)
    assert (found.reason, found.entry is None) == (reason, bool(reason))


class _Cuda:
    """A device that torch would describe under this name."""

    type = "cuda"

    def __init__(self, name: str) -> None:
        self.major, self.minor, self.multi_processor_count, self.name = 9, 0, 132, name


@pytest.mark.parametrize(
    ("name", "device_class"),
    [
        ("NVIDIA H200", "sm_90a/132/hbm3e"),
        ("NVIDIA H200 NVL", "sm_90a/132/hbm3e"),
        ("NVIDIA X900", "sm_90a/132/unknown"),
    ],
)
def test_a_device_whose_name_is_in_no_table_is_said_once_and_a_known_one_is_not(
    monkeypatch, warnings_of, name: str, device_class: str
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: device)
    devices, device = Devices(), _Cuda(name)
    assert [devices.class_of(device), devices.class_of(device)] == [device_class, device_class]
    said = [text for text in warnings_of() if "no alias table knows" in text]
    assert said == ([] if "unknown" not in device_class else said[:1])
    assert bool(said) == ("unknown" in device_class)

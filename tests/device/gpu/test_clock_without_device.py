"""The clock where there is no device: polite without a driver, right arithmetic over a driver that is made up."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fib_core.builders import toolchain

_HERE = Path(__file__).parent
_TRIAL = """
import json, sys
from pathlib import Path
from clock import Clock
clock = Clock(Path(sys.argv[1]))
said = [clock.init(Path(sys.argv[2]) if sys.argv[2] else None), clock.open(int(sys.argv[3]))]
reading = clock.time(lambda: None) if said[1][0] >= 0 else None
details = clock.details().__dict__ if said[1][0] == 0 and reading.code == 0 else None
between = clock.details(between=True).__dict__ if details else None
print(json.dumps({"said": said, "reading": reading and reading.__dict__, "details": details, "between": between}))
"""


@pytest.fixture(scope="module")
def fakes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("fakes")
    driver = directory / "libcuda.so.1"
    flags = ["-std=c++17", "-fPIC", "-shared", "-o", str(driver)]
    subprocess.run([toolchain.compiler(), *flags, str(_HERE / "fake_driver.cpp")], check=True, timeout=60)
    (directory / "libcupti.so").symlink_to(driver)  # the loader sees one library, so the two share their state
    return directory


def _trial(library: Path, places: Path | None, cupti: str, device: int = 0, **settings: str) -> dict[str, Any]:
    modules = [str(_HERE), str(_HERE.parents[2]), os.environ.get("PYTHONPATH", "")]
    paths = {"PYTHONPATH": os.pathsep.join(modules), "LD_LIBRARY_PATH": str(places or "")}
    command = [sys.executable, "-c", _TRIAL, str(library), cupti, str(device)]
    environment = {**os.environ, **paths, **settings}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="this host has a driver")
def test_without_a_driver_it_says_so(clock_library: Path) -> None:
    (init, why), (opened, also) = _trial(clock_library, None, "")["said"]
    assert (init, opened) == (-1, -1)
    assert "libcuda.so.1" in why
    assert "did not find a driver" in also


def test_the_span_is_first_start_to_last_end_without_the_canary(clock_library: Path, fakes: Path) -> None:
    found = _trial(clock_library, fakes, str(fakes / "libcupti.so"))
    assert found["said"] == [[0, ""], [0, ""]]
    assert found["reading"] | {"host_ns": 0} == {
        "code": 0, "event_ns": 12500, "cupti_ns": 5000, "host_ns": 0, "kernels": 2,
    }  # fmt: skip
    assert 0 < found["reading"]["host_ns"] < 50_000_000
    assert found["details"]["launch_ns"] <= found["reading"]["host_ns"]
    assert found["details"] | {"digest": 0, "launch_ns": 0} == {
        "busy_ns": 2000 + 3000 + 500, "fill_ns": 400, "launch_ns": 0, "digest": 0,
        "kernels": 2, "copies": 0, "fills": 1, "early": False, "fetched": 0,
        "idle_ns": 12_500 - (6_000 - 900),
        "names": ["first", "second"],
    }  # fmt: skip


def test_work_that_began_before_the_fill_had_ended_is_told(clock_library: Path, fakes: Path) -> None:
    found = _trial(clock_library, fakes, str(fakes / "libcupti.so"), FAKE_CUPTI_EARLY="1")
    assert found["details"]["early"] is True


@pytest.mark.parametrize(("memory", "fetched"), [("1", 1), ("2", 1), ("3", 0), ("4", 0), ("5", 1), ("6", 0), ("7", 1)])
def test_a_copy_to_what_the_host_reads_is_told_from_one_to_the_device(
    clock_library: Path, fakes: Path, memory: str, fetched: int
) -> None:
    found = _trial(clock_library, fakes, str(fakes / "libcupti.so"), FAKE_CUPTI_COPY=memory)
    assert (found["details"]["copies"], found["details"]["fetched"]) == (1, fetched)


def test_what_ended_before_the_fill_began_is_no_part_of_the_call(clock_library: Path, fakes: Path) -> None:
    found = _trial(clock_library, fakes, str(fakes / "libcupti.so"), FAKE_CUPTI_STRAY="100")
    assert (found["reading"]["kernels"], found["reading"]["cupti_ns"]) == (1, 6000 - 2000)
    assert (found["between"]["kernels"], found["between"]["busy_ns"], found["between"]["names"]) == (1, 350, ["second"])
    honest = _trial(clock_library, fakes, str(fakes / "libcupti.so"))["between"]
    assert (honest["kernels"], honest["busy_ns"], honest["idle_ns"], honest["names"]) == (0, 0, 0, [])


def test_a_trace_without_the_canary_is_no_measurement(clock_library: Path, fakes: Path) -> None:
    found = _trial(clock_library, fakes, str(fakes / "libcupti.so"), FAKE_CUPTI_BLIND="1")
    assert (found["reading"]["cupti_ns"], found["reading"]["event_ns"]) == (-2, 12500)


def test_unknown_records_are_refused_and_the_events_stay(clock_library: Path, fakes: Path) -> None:
    for version, known in (("26", True), ("130500", True), ("25", False), ("130600", False)):
        found = _trial(clock_library, fakes, str(fakes / "libcupti.so"), FAKE_CUPTI_VERSION=version)
        code, why = found["said"][0]
        assert code == (0 if known else 1), version
        assert known or version in why
        assert found["reading"]["cupti_ns"] == (5000 if known else -1)
        assert found["reading"]["event_ns"] == 12500
    missing = _trial(clock_library, fakes, "/nowhere/libcupti.so")
    assert missing["said"][0][0] == 1
    assert "nowhere" in missing["said"][0][1]
    assert missing["reading"]["event_ns"] == 12500


def test_the_drivers_refusal_comes_through_as_its_number(clock_library: Path, fakes: Path) -> None:
    code, why = _trial(clock_library, fakes, "", device=7)["said"][1]
    assert code == -1
    assert "CUresult 101" in why
    assert _trial(clock_library, fakes, "", FAKE_CUDA_BROKEN="1")["reading"]["code"] == 700

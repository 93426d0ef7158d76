"""The inputs of a timed call are nowhere in the contestant's memory before the driver is about to start its clock."""

import os
from collections.abc import Iterator

import pytest
import torch
from kernels import ADD, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from fib_core.device import ground, regions
from fib_core.device.case import Case
from fib_core.device.ground import Ground
from schemas.evaluation import Status

OPTIONS = {"device": "cpu", "seed": "secret", "blob_root": None, "input_sets": 4, "sample_count": 3, "warmup_count": 1}
# Makes the page of its input unwritable, as it may; then the driver cannot put the next inputs there.
LOCKS_ITS_INPUT = """
import ctypes
def run(a, b):
    start = a.data_ptr() & ~4095
    ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(start), ctypes.c_size_t(4096), 1)
    return a + b
"""


@pytest.fixture
def opened() -> Iterator[tuple[Case, Ground]]:
    case = Case(ADD, workload(ADD, N=1000), OPTIONS)
    made = Ground(case, {}, case.inputs(0), destination=False)
    made.open()
    yield case, made
    made.close()


def test_what_is_handed_over_is_not_in_the_shared_memory_and_fills_it_byte_by_byte(opened: tuple[Case, Ground]) -> None:
    case, made = opened
    made.stage(case.inputs(0))
    made.fill(0, 0)
    made.stage(case.inputs(1))
    assert made.signs(0, 0).mutated, "the shared block holds other contents than those that come next"
    (fd,) = made.hand_over(0, 0)
    assert made.signs(0, 0).mutated, "and handing over does not change that"
    fresh, output = made.staged_bytes
    block = regions.attach(made.fds[1], fresh)
    block.copy_(torch.frombuffer(bytearray(os.pread(fd, fresh, 0)), dtype=torch.uint8))
    assert made.signs(0, 0) == (False, False), "what the driver puts there is what the referee compares with"
    assert os.fstat(fd).st_size == fresh + output


def test_every_call_has_a_file_of_its_own_and_the_last_one_goes_with_the_memory(opened: tuple[Case, Ground]) -> None:
    case, made = opened
    made.stage(case.inputs(1))
    first = os.fstat(made.hand_over(0, 0)[0]).st_ino
    made.stage(case.inputs(2))
    (fd,) = made.hand_over(1, 1)
    assert os.fstat(fd).st_ino != first
    made.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_what_is_too_large_is_put_in_place_at_once(
    opened: tuple[Case, Ground], monkeypatch: pytest.MonkeyPatch
) -> None:
    case, made = opened
    monkeypatch.setattr(ground, "_STAGED_MAX_BYTES", 100)
    made.stage(case.inputs(1))
    assert made.hand_over(0, 0) == []
    assert made.staged_bytes == (0, 0)
    assert made.signs(0, 0) == (False, False)


def test_who_makes_its_inputs_unwritable_answers_for_it_alone(worker: DeviceWorker) -> None:
    entrants = [solution(ADD, LOCKS_ITS_INPUT), solution(ADD, "def run(a, b):\n    return a + b\n")]
    found = worker.visit(request(ADD, entrants, [workload(ADD, N=1000)]))
    assert found.fault is None
    locked, plain = found.evaluations
    assert (locked.status, locked.rule) == (Status.RUNTIME_ERROR, "exception")
    assert "inputs cannot be written" in locked.reason
    assert plain.status is Status.PASSED, plain.reason

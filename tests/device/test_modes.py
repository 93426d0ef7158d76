"""Isolated: a fresh process for every visit. Persistent: one for all visits of a solution, never trusted alone."""

import os
from pathlib import Path

import psutil
import pytest
from kernels import ADD, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from schemas.evaluation import Evaluation, Status

TELLS_ITS_PID = "import os\nprint('pid', os.getpid(), flush=True)\ndef run(a, b):\n    return a + b\n"
# Right in its first visit only: state that outlives a visit spoils the next one.
DECAYS = """
visits = set()
def run(a, b):
    visits.add(a.numel())
    return a + b if len(visits) < 3 else a - b
"""
END_S = 30.0  # an end by itself takes a busy host seconds; who does not end stays for good
ALWAYS_WRONG = "def run(a, b):\n    return a - b\n"


def _visit(worker: DeviceWorker, source: str, mode: str, *sizes: int) -> tuple[Evaluation, ...]:
    result = worker.visit(request(ADD, [solution(ADD, source)], [workload(ADD, N=n) for n in sizes], mode=mode))
    assert result.fault is None, result.fault
    return result.evaluations


def _pids(evaluations: tuple[Evaluation, ...]) -> set[str]:
    return {line for item in evaluations for line in item.log.splitlines() if line.startswith("pid")}


def test_an_isolated_visit_meets_a_fresh_process(worker: DeviceWorker) -> None:
    first, second = (_pids(_visit(worker, TELLS_ITS_PID, "isolated", 8, 9)) for _ in range(2))
    assert len(first) == len(second) == 1
    assert first != second


def test_a_persistent_process_serves_the_next_visit_under_a_new_key(worker: DeviceWorker) -> None:
    source = TELLS_ITS_PID + "# kept\n"
    first = _visit(worker, source, "persistent", 8, 9)
    second = _visit(worker, source, "persistent", 10, 11)
    assert [item.status for item in (*first, *second)] == [Status.PASSED] * 4
    assert {item.job.mode for item in (*first, *second)} == {"persistent"}
    assert len(_pids((*first, *second))) == 1, "imported once"


def test_a_failure_in_a_kept_process_is_asked_again_in_a_fresh_one(worker: DeviceWorker) -> None:
    first = _visit(worker, DECAYS, "persistent", 8, 9)
    second = _visit(worker, DECAYS, "persistent", 10, 11)
    assert [item.status for item in (*first, *second)] == [Status.PASSED] * 4


def test_a_fresh_process_does_not_make_a_wrong_kernel_right(worker: DeviceWorker) -> None:
    for _ in range(2):
        found = _visit(worker, ALWAYS_WRONG, "persistent", 8, 9)
        assert {item.status for item in found} == {Status.INCORRECT_NUMERICAL}


@pytest.mark.parametrize("end", ["close", "kill"])
def test_kept_processes_end_with_their_worker_or_its_fork_server(tmp_path: Path, end: str) -> None:
    with DeviceWorker(cache_dir=tmp_path) as own:
        _visit(own, TELLS_ITS_PID, "persistent", 8)
        zygote = psutil.Process(own.zygote_pid)
        kept = zygote.children(recursive=True)
        assert len(kept) == 1
        if end == "kill":
            os.kill(zygote.pid, 9)
            psutil.wait_procs([zygote, *kept], timeout=END_S)
            assert _visit(own, TELLS_ITS_PID, "persistent", 9)[0].status is Status.PASSED
    _, alive = psutil.wait_procs([zygote, *kept], timeout=END_S)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


def test_a_visit_that_bad_input_spoils_leaves_no_kept_process_behind(worker: DeviceWorker) -> None:
    lost = {"a": {"type": "safetensors", "path": "nowhere.safetensors", "tensor_key": "a"}}
    works = [workload(ADD, N=8), workload(ADD, lost, N=9)]
    own = psutil.Process(worker.zygote_pid)
    before = len(own.children(recursive=True))
    spoiled = worker.visit(request(ADD, [solution(ADD, TELLS_ITS_PID + "# spoiled\n")], works, mode="persistent"))
    assert spoiled.fault is not None
    assert spoiled.fault.cause == "bad_input"
    assert len(own.children(recursive=True)) == before

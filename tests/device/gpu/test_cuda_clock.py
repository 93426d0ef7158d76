"""The clock on a real device: its three readings agree, and what a candidate would hide shows in one of them."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from clock import Clock, Reading
from facts_timers import L2_TWICE, covered, operations
from forks import in_fork

from fib_core.device.environment_cuda import find_cupti

pytestmark = pytest.mark.gpu
_MATMUL, _SMALL, _LARGE = "matmul_4096", "add_4096", "add_of_512_mib"


@pytest.fixture
def timed(clock_library: Path) -> Callable[..., dict[str, Any]]:
    """Runs ``trial(clock, operations)`` in a fresh process with an open clock."""

    def run(trial: Callable[[Clock, dict[str, Any]], dict[str, Any]], cupti: Path | str | None = "") -> dict[str, Any]:
        def work() -> dict[str, Any]:
            clock = Clock(clock_library)
            path = find_cupti() if cupti == "" else cupti
            opened = clock.init(path), clock.open()  # type: ignore[arg-type]
            assert (opened[0][0], opened[1][0]) == ((0, 0) if path is not None else (1, 1)), opened
            assert clock.flush(4 * L2_TWICE) == 0
            return trial(clock, operations())

        answer = in_fork(work)
        assert "raised" not in answer, answer
        assert "died" not in answer, answer
        return answer

    return run


def _medians(clock: Clock, call: Callable[[], Any], calls: int = 30) -> dict[str, float]:
    """Of the calls whose launch was hidden behind the fill (of all, where there is no trace to tell)."""
    traced = [(clock.time(call), covered(clock)) for _ in range(calls)]
    found = [reading for reading, hidden in traced[5:] if hidden]
    assert len(found) > 5, traced
    assert {reading.code for reading in found} == {0}
    names = ("event_ns", "cupti_ns", "host_ns", "kernels")
    return {name: median(getattr(reading, name) for reading in found) for name in names}


def test_three_clocks_agree_on_a_long_kernel_and_an_empty_call_is_nearly_nothing(timed: Any) -> None:
    found = timed(lambda clock, ops: {name: _medians(clock, ops[name]) for name in (_MATMUL, "nothing")})
    long, empty = found[_MATMUL], found["nothing"]
    assert 0 < long["event_ns"] - long["cupti_ns"] < 6_000
    assert long["cupti_ns"] < long["host_ns"] < long["cupti_ns"] + 400_000
    assert (empty["kernels"], empty["cupti_ns"]) == (0, 0)
    assert empty["event_ns"] < 10_000


def test_without_cupti_the_other_two_clocks_stand_and_it_says_so(timed: Any) -> None:
    found = timed(lambda clock, ops: [clock.time(ops[_MATMUL]) for _ in range(9)][-1].__dict__, cupti=None)
    assert (found["code"], found["cupti_ns"], found["kernels"]) == (0, -1, -1)
    assert 100_000 < found["event_ns"] < found["host_ns"]


def test_work_on_a_stream_that_nobody_joins_is_seen_by_host_and_cupti_but_not_by_the_events(timed: Any) -> None:
    def trial(clock: Clock, ops: dict[str, Any]) -> dict[str, Any]:
        side = torch.cuda.Stream()

        def aside() -> None:
            with torch.cuda.stream(side):
                ops[_MATMUL]()

        medians = {"aside": _medians(clock, aside)}
        early = clock.details().early
        return medians | {"plain": _medians(clock, ops[_MATMUL]), "early": [early, clock.details().early]}

    found = timed(trial)
    aside, plain = found["aside"], found["plain"]
    assert aside["cupti_ns"] > 0.8 * plain["cupti_ns"]
    assert aside["host_ns"] > 0.8 * plain["host_ns"]
    assert aside["event_ns"] < 0.5 * plain["event_ns"]
    assert found["early"] == [True, False], "it did not wait for what came before the call"


def test_a_graph_replay_shows_every_kernel_and_its_names(timed: Any) -> None:
    def trial(clock: Clock, ops: dict[str, Any]) -> dict[str, Any]:
        ops[_SMALL]()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(3):
                ops[_SMALL]()
        one = clock.time(ops[_SMALL]), clock.details().digest
        three = clock.time(graph.replay), clock.details().digest
        other = clock.time(ops[_MATMUL]), clock.details().digest
        return {"kernels": [one[0].kernels, three[0].kernels], "digests": [one[1], three[1], other[1]]}

    found = timed(trial)
    assert found["kernels"] == [1, 3]
    one, three, other = found["digests"]
    assert one == three != other


def test_python_patches_do_not_reach_it(timed: Any) -> None:
    def trial(clock: Clock, ops: dict[str, Any]) -> dict[str, Any]:
        before = _medians(clock, ops[_MATMUL])
        torch.cuda.Event.elapsed_time = lambda self, end: 0.0  # type: ignore[method-assign]
        torch.cuda.synchronize = lambda device=None: None
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        ops[_MATMUL]()
        end.record()
        return {"before": before, "after": _medians(clock, ops[_MATMUL]), "torch": start.elapsed_time(end)}

    found = timed(trial)
    assert found["torch"] == 0.0, "the patch fools a Python timer"
    assert found["after"]["event_ns"] == pytest.approx(found["before"]["event_ns"], rel=0.1)


def test_a_trace_that_is_taken_away_is_noticed_and_comes_back(timed: Any) -> None:
    def trial(clock: Clock, ops: dict[str, Any]) -> dict[str, Any]:
        trace = ctypes.CDLL(str(find_cupti()))

        def finalize() -> None:
            trace.cuptiFinalize()
            ops[_SMALL]()

        return {"plain": clock.time(ops[_SMALL]).__dict__, "taken": clock.time(finalize).__dict__}

    found = timed(trial)
    assert found["plain"]["cupti_ns"] > 0
    assert found["taken"]["cupti_ns"] == -2


def test_a_kernel_behind_a_switched_off_trace_is_seen_by_the_events(timed: Any) -> None:
    def trial(clock: Clock, ops: dict[str, Any]) -> dict[str, Any]:
        trace = ctypes.CDLL(str(find_cupti()))

        def decoy() -> None:
            trace.cuptiActivityDisable(10)
            ops[_LARGE]()
            trace.cuptiActivityEnable(10)
            ops[_SMALL]()

        return {"decoy": _medians(clock, decoy), "large": _medians(clock, ops[_LARGE])}

    found = timed(trial)
    assert found["decoy"]["event_ns"] - found["decoy"]["cupti_ns"] > 100_000
    assert found["large"]["event_ns"] - found["large"]["cupti_ns"] < 6_000


def test_work_between_timed_calls_is_counted_apart(timed: Any) -> None:
    def trial(clock: Clock, ops: dict[str, Any]) -> dict[str, Any]:
        clock.time(ops[_SMALL])
        clock.time(ops[_SMALL])
        idle = clock.details(between=True).kernels
        ops[_MATMUL]()
        reading: Reading = clock.time(ops[_SMALL])
        return {"idle": idle, "busy": clock.details(between=True).kernels, "inside": reading.kernels}

    assert timed(trial) == {"idle": 0, "busy": 1, "inside": 1}


def test_a_broken_context_is_an_error_code_and_no_time(timed: Any) -> None:
    def trial(clock: Clock, ops: dict[str, Any]) -> dict[str, Any]:
        ops[_SMALL]()
        index = torch.full((1,), 1 << 40, device="cuda", dtype=torch.int64)
        torch.cuda.synchronize()
        return {"broken": clock.time(lambda: torch.zeros(4, device="cuda")[index]).code, "next": clock.begin()}

    found = timed(trial)
    assert found["broken"] != 0
    assert found["next"] != 0

"""The cold path in visits: what is slow once is told apart from samples, and told where it belongs."""

import json
from pathlib import Path
from statistics import median

import pytest
from kernels import ADD, GEMM, SAMPLE, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from fib_core.builders.sources import once, took_s
from fib_core.device.floor import as_measured, rooflines_of
from fib_core.device.outcome import Newcomer
from fib_core.device.peaks import HEADROOM, NARROW, NARROW_ON_CUDA
from fib_core.roofline import Peaks
from schemas.evaluation import Evaluation, Status

IMPORT_S, FIRST_S, SHAPE_S = 0.2, 0.1, 0.03
LAZY = f"""
import time
time.sleep({IMPORT_S})
seen = set()

def run(a, b):
    if not seen:
        time.sleep({FIRST_S})
    if len(a) not in seen:
        time.sleep({SHAPE_S})
    seen.add(len(a))
    return a + b
"""
EAGER = "def run(a, b):\n    return a + b\n"
CPP = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
void run(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  auto x = static_cast<const float*>(a.data_ptr());
  auto y = static_cast<const float*>(b.data_ptr());
  auto z = static_cast<float*>(c.data_ptr());
  for (int64_t i = 0; i < a.size(0); ++i) z[i] = x[i] + y[i];
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
"""


def visited(
    worker: DeviceWorker, source: str, sizes: tuple[int, ...] = (64, 128, 256), **spec: object
) -> list[Evaluation]:
    result = worker.visit(request(ADD, [solution(ADD, source, **spec)], [workload(ADD, N=size) for size in sizes]))
    assert result.fault is None
    return list(result.evaluations)


def test_import_first_call_and_first_shapes_are_told_apart_and_stay_out_of_the_samples(worker: DeviceWorker) -> None:
    """No sleep is ever short; that none counts twice shows in the least of several, since a host may stall once."""
    rounds = [visited(worker, LAZY) for _ in range(3)]
    for first, *others in rounds:
        assert first.build_s is not None
        assert first.build_s >= IMPORT_S
        assert first.first_call_us is not None
        assert first.first_call_us >= (FIRST_S + SHAPE_S) * 1e6
        assert first.first_shape_us == first.first_call_us
        for item in others:
            assert (item.build_s, item.first_call_us) == (None, None)
            assert item.first_shape_us is not None
            assert item.first_shape_us >= SHAPE_S * 1e6
    assert min(first.build_s or 0.0 for first, *_ in rounds) < 2 * IMPORT_S
    for number in (1, 2):
        assert min(found[number].first_shape_us or 0.0 for found in rounds) < (FIRST_S + SHAPE_S) * 1e6
    for number in range(3):
        assert min(median(found[number].samples_us) for found in rounds) < SHAPE_S * 1e6


def test_the_first_call_is_the_first_warm_up_call_by_the_same_clock(worker: DeviceWorker) -> None:
    for item in visited(worker, EAGER):
        assert item.first_shape_us == item.warmup_us[0]


def test_a_kernel_without_a_cold_path_shows_none(worker: DeviceWorker) -> None:
    """The negative control of the sleeping kernel: what is measured is the kernel's, not the harness's."""
    found = [item for _ in range(3) for item in visited(worker, EAGER)]
    assert all(item.status is Status.PASSED for item in found)
    # The least of several: a busy host may stop any one of them.
    assert min(item.first_shape_us or 0.0 for item in found) < SHAPE_S * 1e6 / 2
    assert min(item.build_s for item in found if item.build_s is not None) < IMPORT_S


def test_a_first_call_that_raises_has_no_time(worker: DeviceWorker) -> None:
    first, second = visited(worker, "def run(a, b):\n    raise ValueError\n", (64, 128))
    assert first.status is second.status is Status.RUNTIME_ERROR
    assert first.first_call_us is first.first_shape_us is None
    body = json.loads(first.model_dump_json())
    assert "first_call_us" not in body


def test_every_process_tells_its_own_first_call(worker: DeviceWorker) -> None:
    """A failure ends the process: the next workload meets a fresh one, whose first call is one of a new process."""
    failing = "def run(a, b):\n    return a + b if len(a) != 128 else a\n"
    one, two, three = visited(worker, failing)
    assert (one.status, two.status is Status.PASSED, three.status) == (Status.PASSED, False, Status.PASSED)
    assert one.first_call_us is not None
    assert two.first_call_us is None
    assert three.first_call_us == three.first_shape_us is not None


def test_a_process_that_was_kept_has_no_first_call(worker: DeviceWorker) -> None:
    asked = request(ADD, [solution(ADD, LAZY)], [workload(ADD, N=64)], mode="persistent")
    (fresh,), *others = (worker.visit(asked).evaluations for _ in range(4))
    assert fresh.first_call_us is not None
    for (kept,) in others:
        assert (kept.build_s, kept.first_call_us) == (None, None)
        assert kept.first_shape_us is not None
    assert min(kept.first_shape_us or 0.0 for (kept,) in others) < FIRST_S * 1e6  # the least: a host may stall once


def test_the_processes_of_a_distribution_test_are_not_mistaken_for_the_first(worker: DeviceWorker) -> None:
    """Draws are made in fresh processes; what they cost belongs to the test, and their process is no newcomer after."""
    recipes = {
        "probs": {"type": "random", "distribution": "probs"},
        "top_k": {"type": "structured", "generator": "constant", "params": {"value": 40, "count": 8}},
    }
    body = f"""
import time
import torch
begun = []

def run(probs, top_k):
    if not begun:
        begun.append(time.sleep({FIRST_S}))
    values, index = probs.topk(40, dim=1)
    return index.gather(1, torch.multinomial(values, 1))[:, 0]
"""
    asked = request(SAMPLE, [solution(SAMPLE, body)], [workload(SAMPLE, recipes, B=8)] * 2, sampling_draws=1_500)
    seconds_us = []
    for _ in range(3):
        first, second = worker.visit(asked).evaluations
        assert first.status is second.status is Status.PASSED
        assert first.first_call_us is not None
        assert first.first_call_us >= FIRST_S * 1e6
        assert second.first_call_us is None
        assert second.first_shape_us is not None
        seconds_us.append(second.first_shape_us)
        if seconds_us[-1] < FIRST_S * 1e6:
            break
    assert min(seconds_us) < FIRST_S * 1e6, "the least of several: a host may stall once"


def test_compiling_counts_where_it_was_done_and_is_told_again_by_later_visits(worker: DeviceWorker) -> None:
    made = visited(worker, CPP, (64,), language="cpp", destination_passing_style=True)[0]
    (path,) = (kept for kept in worker._cache_dir.glob("*/took_s") if CPP in _source_beside(kept))
    compiled_s, noted = float(path.read_text()), path.stat()
    again = visited(worker, CPP, (64,), language="cpp", destination_passing_style=True)[0]
    assert made.status is Status.PASSED
    assert made.build_s is not None
    assert again.build_s is not None
    assert compiled_s > 0
    assert made.build_s > compiled_s, "and what loading took"
    assert again.build_s > compiled_s
    assert path.stat() == noted, "and nothing was compiled again"
    path.write_text(f"{compiled_s + 1000:.6f}")
    told = visited(worker, CPP, (64,), language="cpp", destination_passing_style=True)[0]
    path.write_text(f"{compiled_s:.6f}")
    assert told.build_s is not None
    assert told.build_s - compiled_s > 1000, "the control: what a later visit tells is what was noted"


def _source_beside(took: Path) -> str:
    return "".join(source.read_text() for source in took.parent.glob("src/*.cc"))


def test_an_artefact_whose_compiler_was_not_timed_has_no_build_time(tmp_path: Path) -> None:
    target = once(tmp_path / "made", lambda place: None)
    assert took_s(target) is not None
    (target / "took_s").unlink()
    assert took_s(target) is None
    assert Newcomer.loaded(took_s(target), 0.1).meets(5000).build_s is None
    assert Newcomer.loaded(0.5, 0.25).meets(5000).build_s == 0.75


def test_a_roofline_uses_peaks_as_measured_while_the_floor_keeps_its_headroom() -> None:
    peaks = Peaks(near_bytes_per_s=4e11, far_bytes_per_s=1e11, near_capacity_bytes=5e5, flops_per_s=6.4e12)
    seen = as_measured(peaks, "cpu")
    assert (seen.near_bytes_per_s, seen.far_bytes_per_s) == (4e11 / HEADROOM, 1e11 / HEADROOM)
    assert seen.flops_per_s == 6.4e12 / HEADROOM / NARROW
    assert as_measured(peaks, "cuda:0").flops_per_s == 6.4e12 / HEADROOM / NARROW_ON_CUDA
    (bound,) = rooflines_of(request(GEMM, [solution(GEMM, EAGER)], [workload(GEMM, M=512)]), peaks, "cpu")
    assert bound == pytest.approx(2 * 512 * 64 * 48 / 1e11 * 1e6)

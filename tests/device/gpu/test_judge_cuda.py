"""The judge on a CUDA device: honest kernels pass, cheats of streams, graphs and memory do not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels_cuda import ADD, CUDA_ADD, SOURCES, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from schemas.evaluation import Evaluation, Status

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeviceWorker]:
    with DeviceWorker(cache_dir=tmp_path_factory.mktemp("build"), device="cuda:0") as running:
        running.warm()
        yield running


def _visit(worker: DeviceWorker, source: str, **spec: object) -> tuple[Evaluation, ...]:
    entered = [solution(ADD, source, **spec)]
    result = worker.visit(request(ADD, entered, [workload(ADD, N=1 << 16), workload(ADD, N=999)]))
    assert result.fault is None, result.fault
    return result.evaluations


@pytest.mark.parametrize("name", [name for name, row in SOURCES.items() if row.status is Status.PASSED])
def test_an_honest_kernel_passes_and_both_clocks_agree(worker: DeviceWorker, name: str) -> None:
    row = SOURCES[name]
    for evaluation in _visit(worker, row.source, **row.spec):
        assert (evaluation.status, evaluation.rule) == (Status.PASSED, None), evaluation.reason + evaluation.log
        assert len(evaluation.samples_us) == len(evaluation.second_clock_us) == 5
        assert all(0 < sample < 1e5 for sample in evaluation.samples_us)


@pytest.mark.parametrize("name", [name for name, row in SOURCES.items() if row.status is not Status.PASSED])
def test_a_cheat_or_a_mistake_is_named(worker: DeviceWorker, name: str) -> None:
    row = SOURCES[name]
    for evaluation in _visit(worker, row.source, **row.spec):
        seen = evaluation.rule, evaluation.reason, evaluation.samples_us, evaluation.log[-800:]
        assert evaluation.status in (row.status, *row.also), seen
        assert evaluation.rule in row.rules, (evaluation.rule, evaluation.reason)


def test_a_crashed_context_costs_nobody_else_anything(worker: DeviceWorker) -> None:
    index = "torch.tensor([1 << 30], device=a.device)"
    crash = f"import torch\ndef run(a, b):\n    return a[{index}].sum() + a + b\n"
    assert _visit(worker, crash)[0].status is Status.RUNTIME_ERROR
    assert [e.status for e in _visit(worker, SOURCES["plain"].source)] == [Status.PASSED] * 2


def test_cuda_cpp_is_compiled_and_judged(worker: DeviceWorker) -> None:
    entered = solution(ADD, CUDA_ADD, language="cuda", destination_passing_style=True)
    result = worker.visit(request(ADD, [entered], [workload(ADD, N=4097)]))
    assert result.fault is None, result.fault
    assert [(e.status, e.reason) for e in result.evaluations] == [(Status.PASSED, "")], result.evaluations[0].log


def test_the_environment_names_the_device(worker: DeviceWorker) -> None:
    environment = worker.describe()
    assert environment.device_class.startswith("sm_")
    assert environment.device_id.startswith("GPU-")
    assert Path("/dev/nvidia0").exists()

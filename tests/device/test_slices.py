"""Where a definition lets callers hand over slices, a kernel meets padded rows and an offset start, and must cope."""

from kernels import request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from fib_core.split import stress_workloads
from schemas.definition import Definition
from schemas.evaluation import Status

REFERENCE = "import torch\ndef run(x, weight):\n    return x * weight\n"
SCALE = Definition.model_validate(
    {
        "name": "scale", "op_type": "rmsnorm",
        "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 40}},
        "inputs": {
            "x": {"shape": ["batch_size", "hidden_size"], "dtype": "float32"},
            "weight": {"shape": ["hidden_size"], "dtype": "float32"},
        },
        "outputs": {"out": {"shape": ["batch_size", "hidden_size"], "dtype": "float32"}},
        "reference": REFERENCE, "strided": ["x"],
    }
)  # fmt: skip
HONEST = "def run(x, weight):\n    return x * weight\n"
BY_ADDRESS = """
import ctypes, torch
def run(x, weight):
    dense = torch.empty(x.shape)
    ctypes.memmove(dense.data_ptr(), x.data_ptr(), dense.nbytes)
    return dense * weight
"""
SEES_A_SLICE = """
def run(x, weight):
    assert x.stride() == (48, 1), x.stride()
    assert x.storage_offset() == 0 and x.data_ptr() % 256 == 32
    return x * weight
"""


def _statuses(worker: DeviceWorker, source: str, padded: bool) -> list[Status]:
    recipe = {"x": {"type": "random", "layout": "padded"}} if padded else {}
    result = worker.visit(request(SCALE, [solution(SCALE, source)], [workload(SCALE, recipe, batch_size=5)]))
    assert result.fault is None, result.fault
    return [item.status for item in result.evaluations]


def test_a_kernel_that_ignores_strides_is_right_on_dense_rows_only(worker: DeviceWorker) -> None:
    assert _statuses(worker, BY_ADDRESS, padded=False) == [Status.PASSED]
    assert _statuses(worker, BY_ADDRESS, padded=True) == [Status.INCORRECT_NUMERICAL]


def test_an_honest_kernel_passes_on_slices(worker: DeviceWorker) -> None:
    for padded in (False, True):
        assert _statuses(worker, HONEST, padded) == [Status.PASSED]
    assert _statuses(worker, SEES_A_SLICE, padded=True) == [Status.PASSED]


def test_stress_workloads_contain_a_padded_one_exactly_where_slices_are_allowed() -> None:
    layouts = [item.inputs["x"].layout for item in stress_workloads(SCALE)]
    assert layouts.count("padded") == 1
    dense = SCALE.model_copy(update={"strided": ()})
    assert [item.inputs["x"].layout for item in stress_workloads(dense)] == [None] * (len(layouts) - 1)


def test_a_padded_workload_is_another_workload() -> None:
    recipes = [{"x": {"type": "random", "layout": layout}} for layout in ("padded", None)]
    padded, dense = (workload(SCALE, recipe, batch_size=5) for recipe in recipes)
    assert padded.digest != dense.digest
    assert dense.digest == workload(SCALE, batch_size=5).digest

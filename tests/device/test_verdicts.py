"""Every way in which a contestant can fail ends in its own status and rule, and costs nobody else anything."""

import ast

import pytest
from kernels import ADD, GEMM, LIMITS, NORM, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from schemas.evaluation import Status

HONEST = "def run(a, b):\n    return a + b\n"
_WRONG = Status.INCORRECT_NUMERICAL
FAILING = {
    "wrong_shape": ("def run(a, b):\n    return (a + b)[:-1]\n", Status.INCORRECT_SHAPE, "shape"),
    "wrong_count": ("def run(a, b):\n    return a + b, a\n", Status.INCORRECT_SHAPE, "count"),
    "wrong_dtype": ("def run(a, b):\n    return (a + b).double()\n", Status.INCORRECT_DTYPE, "dtype"),
    "off_by_little": ("def run(a, b):\n    return (a + b) * 1.001\n", Status.INCORRECT_NUMERICAL, "tolerance"),
    "zeros": ("import torch\ndef run(a, b):\n    return torch.zeros_like(a)\n", _WRONG, "tolerance"),
    "nan": ("def run(a, b):\n    c = a + b\n    c[3] = float('nan')\n    return c\n", _WRONG, "nonfinite"),
    "stale": (
        "kept = {}\ndef run(a, b):\n    c = kept.setdefault(len(a), a + b)\n    return c.clone()\n",
        Status.INCORRECT_NUMERICAL, "tolerance",
    ),
    "raises": ("def run(a, b):\n    raise ValueError('no such luck')\n", Status.RUNTIME_ERROR, "exception"),
    "segfault": ("import ctypes\ndef run(a, b):\n    ctypes.string_at(8)\n", Status.RUNTIME_ERROR, "signal"),
    "exit_zero": ("import os\ndef run(a, b):\n    os._exit(0)\n", Status.RUNTIME_ERROR, "exit"),
    "sys_exit": ("import sys\ndef run(a, b):\n    sys.exit(0)\n", Status.RUNTIME_ERROR, "exit"),
    "closes_files": (
        "import os\ndef run(a, b):\n    os.closerange(0, 512)\n    return a + b\n", Status.RUNTIME_ERROR, "exit",
    ),
    "one_big_allocation": (
        "import torch\ndef run(a, b):\n    torch.empty(2**40)\n    return a + b\n",
        Status.RUNTIME_ERROR, "memory_limit",
    ),
    "eats_memory": (
        "def run(a, b):\n    hoard = []\n    while True:\n        hoard.append(bytearray(2**24))\n",
        Status.RUNTIME_ERROR, "memory_limit",
    ),
    "children_eat_memory": (
        "import os, time\ndef run(a, b):\n    for _ in range(3):\n        if os.fork() == 0:\n"
        "            x = bytearray(2**28)\n            time.sleep(60)\n    time.sleep(60)\n",
        Status.RUNTIME_ERROR, "memory_limit",
    ),
    "forks_and_forks": (
        "import os, time\ndef run(a, b):\n    for _ in range(100):\n        if os.fork() == 0:\n"
        "            time.sleep(60)\n    time.sleep(60)\n",
        Status.RUNTIME_ERROR, "process_limit",
    ),
    "returns_nothing": ("def run(a, b):\n    a + b\n", Status.INCORRECT_SHAPE, "no_tensor"),
    "returns_an_array": ("def run(a, b):\n    return (a + b).numpy()\n", Status.INCORRECT_SHAPE, "no_tensor"),
    "writes_input": ("def run(a, b):\n    return a.add_(b).clone()\n", Status.CHEATED, "input_mutated"),
    "returns_input": ("def run(a, b):\n    return a\n", Status.CHEATED, "input_alias"),
    "returns_view_of_input": ("def run(a, b):\n    a.add_(b)\n    return a[:]\n", Status.CHEATED, "input_mutated"),
    "subclass": (
        "import torch\nclass Lazy(torch.Tensor):\n    pass\ndef run(a, b):\n    return (a + b).as_subclass(Lazy)\n",
        Status.CHEATED, "tensor_type",
    ),
    "syntax": ("def run(a, b)\n    return a + b\n", Status.COMPILE_ERROR, "build"),
    "missing_module": ("import no_such_module_here\ndef run(a, b):\n    return a\n", Status.COMPILE_ERROR, "build"),
    "no_entry": ("def walk(a, b):\n    return a + b\n", Status.COMPILE_ERROR, "entry_point"),
    "raises_at_import": ("raise OSError('cold')\ndef run(a, b):\n    return a\n", Status.RUNTIME_ERROR, "exception"),
    "dies_at_import": (
        "import ctypes\nctypes.string_at(8)\ndef run(a, b):\n    return a\n", Status.RUNTIME_ERROR, "signal",
    ),
}  # fmt: skip


class _Renamed(ast.NodeTransformer):
    """Other names, other layout, same behaviour."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        names = {"a": "left", "b": "right", "c": "result", "kept": "shelf", "hoard": "pile", "Lazy": "Plain"}
        return ast.Name(names.get(node.id, node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg({"a": "left", "b": "right"}.get(node.arg, node.arg))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.name = "Plain"
        self.generic_visit(node)
        return node


def _renamed(source: str) -> str:
    try:
        tree = _Renamed().visit(ast.parse(source))
    except SyntaxError:
        return source.replace("a, b", "left,   right").replace("a + b", "left+right")
    return "# tidy and correct\n\n" + ast.unparse(ast.fix_missing_locations(tree)) + "\n\n\n"


def _visit(worker: DeviceWorker, *sources: str, **more: object) -> list[tuple[Status, str | None]]:
    solutions = [solution(ADD, source) for source in sources]
    result = worker.visit(request(ADD, solutions, [workload(ADD, N=64), workload(ADD, N=65)], **more))
    assert result.fault is None, result.fault
    return [(evaluation.status, evaluation.rule) for evaluation in result.evaluations]


@pytest.mark.parametrize("name", FAILING)
def test_a_failure_has_its_status_and_rule_whatever_the_names_and_the_layout(worker: DeviceWorker, name: str) -> None:
    source, status, rule = FAILING[name]
    small = LIMITS.model_copy(update={"memory_bytes": 768 * 2**20})
    verdicts = _visit(worker, source, _renamed(source), HONEST, limits=small)
    assert len(verdicts) == 6
    for found in verdicts[:4]:
        assert found[0] is status
        assert found[1] == rule
    assert verdicts[4:] == [(Status.PASSED, None)] * 2


def test_a_hang_times_out_and_the_rest_is_not_reached(worker: DeviceWorker) -> None:
    limits = LIMITS.model_copy(update={"visit_s": 0.7})
    hang = "import time\ndef run(a, b):\n    while True:\n        time.sleep(0.01)\n"
    works = [workload(ADD, N=n) for n in (1, 2, 3)]
    lost_s = []
    for _ in range(3):
        result = worker.visit(request(ADD, [solution(ADD, hang)], works, limits=limits))
        assert [e.status for e in result.evaluations] == [Status.TIMEOUT] * 3
        assert "not reached" in result.evaluations[2].reason
        lost_s.append(result.wall_s - worker.visit(request(ADD, [solution(ADD, HONEST)], works)).wall_s)
        if lost_s[-1] < 2 * limits.visit_s:
            break
    # One limit a visit, not one a workload: less than two beyond what an honest visit takes on this host now. The best
    # of several, since a host may stall once.
    assert min(lost_s) < 2 * limits.visit_s, lost_s


def test_a_failure_on_one_shape_does_not_spoil_the_others(worker: DeviceWorker) -> None:
    picky = "import os\ndef run(a, b):\n    if a.numel() == 64:\n        os.abort()\n    return a + b\n"
    result = worker.visit(request(ADD, [solution(ADD, picky)], [workload(ADD, N=n) for n in (63, 64, 65)]))
    assert [e.status for e in result.evaluations] == [Status.PASSED, Status.RUNTIME_ERROR, Status.PASSED]


def test_a_wrong_answer_in_one_timed_call_only_is_found(worker: DeviceWorker) -> None:
    lazy = "count = 0\ndef run(a, b):\n    global count\n    count += 1\n    return a - b if 4 < count < 8 else a + b\n"
    result = worker.visit(request(ADD, [solution(ADD, lazy)], [workload(ADD, N=64)]))
    assert (result.evaluations[0].status, result.evaluations[0].rule) == (Status.INCORRECT_NUMERICAL, "tolerance")
    assert int(result.evaluations[0].reason.split(":")[0].removeprefix("call ")) > 0


def test_an_untouched_output_buffer_is_not_a_right_answer(worker: DeviceWorker) -> None:
    idle = solution(ADD, "def run(a, b, c):\n    pass\n", destination_passing_style=True)
    result = worker.visit(request(ADD, [idle], [workload(ADD, N=64)]))
    assert (result.evaluations[0].status, result.evaluations[0].rule) == (Status.INCORRECT_NUMERICAL, "nonfinite")


def test_every_sample_is_kept_and_the_log_is_bounded(worker: DeviceWorker) -> None:
    loud = "def run(a, b):\n    print('head')\n    print('x' * 200_000)\n    return a + b\n"
    result = worker.visit(request(ADD, [solution(ADD, loud)], [workload(ADD, N=64)], sample_count=7))
    evaluation = result.evaluations[0]
    assert evaluation.status is Status.PASSED
    assert (len(evaluation.warmup_us), len(evaluation.samples_us)) == (1, 7)
    assert all(0 < sample < 1e6 for sample in evaluation.samples_us)
    assert evaluation.log.startswith("head")
    assert len(evaluation.log) <= 64 * 1024


def test_an_exception_leaves_its_traceback_in_the_log(worker: DeviceWorker) -> None:
    result = worker.visit(request(ADD, [solution(ADD, FAILING["raises"][0])], [workload(ADD, N=64)]))
    assert "no such luck" in result.evaluations[0].log
    assert "main.py" in result.evaluations[0].log


def test_both_conventions_and_empty_inputs_pass(worker: DeviceWorker) -> None:
    passing = solution(
        GEMM, "import torch\ndef run(A, B, C):\n    torch.mm(A, B.T, out=C)\n", destination_passing_style=True
    )
    returning = solution(GEMM, "import torch\ndef run(A, B):\n    return torch.nn.functional.linear(A, B)\n")
    result = worker.visit(request(GEMM, [passing, returning], [workload(GEMM, M=m) for m in (0, 1, 17)]))
    assert [e.status for e in result.evaluations] == [Status.PASSED] * 6
    assert [e.convention for e in result.evaluations] == ["destination_passing"] * 3 + ["value_returning"] * 3


IN_PLACE = """
import torch
def run(x, residual, weight):
    residual.add_(x)
    return torch.nn.functional.rms_norm(residual.float(), (128,), weight.float(), 1e-6).to(x.dtype)
"""


def test_a_mutated_input_is_a_private_copy_and_the_result_is_read_there(worker: DeviceWorker) -> None:
    forgetful = IN_PLACE.replace("residual.add_(x)", "residual = residual + x")
    wrong_place = IN_PLACE.replace("residual.add_(x)", "residual.add_(x); x.zero_()")
    entered = [solution(NORM, source) for source in (IN_PLACE, forgetful, wrong_place)]
    result = worker.visit(request(NORM, entered, [workload(NORM, M=3)]))
    verdicts = [(e.status, e.rule) for e in result.evaluations]
    assert verdicts[0] == (Status.PASSED, None)
    assert verdicts[1][0] is Status.INCORRECT_NUMERICAL
    assert verdicts[2] == (Status.CHEATED, "input_mutated")


def test_a_much_larger_error_than_the_incumbents_is_refused_inside_the_tolerance(worker: DeviceWorker) -> None:
    target = workload(GEMM, M=4)
    sloppy = solution(GEMM, "def run(A, B):\n    return A @ B.T + 1e-5\n")
    exact = solution(GEMM, "def run(A, B):\n    return A @ B.T\n")
    known = {target.digest: {"C": 1e-6}}
    without = worker.visit(request(GEMM, [sloppy, exact], [target]))
    against = worker.visit(request(GEMM, [sloppy, exact], [target], incumbent_errors=known))
    assert [e.status for e in without.evaluations] == [Status.PASSED] * 2
    assert [(e.status, e.rule) for e in against.evaluations] == [
        (Status.INCORRECT_NUMERICAL, "incumbent_error"), (Status.PASSED, None),
    ]  # fmt: skip

"""Compiled and interpreted-Triton contestants before the worker: same verdicts, the compiler's words in the log."""

from kernels import ADD, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from schemas.evaluation import Status

CPP = """
#include <tvm/ffi/tvm_ffi.h>
void run(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  const float *x = static_cast<const float*>(a.data_ptr()), *y = static_cast<const float*>(b.data_ptr());
  float* z = static_cast<float*>(c.data_ptr());
  for (int64_t i = 0; i < a.size(0); ++i) z[i] = x[i] + y[i];
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
"""
TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def _add(a, b, c, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + at, tl.load(a + at, mask=at < n) + tl.load(b + at, mask=at < n), mask=at < n)

def run(a, b):
    c = torch.empty_like(a)
    _add[(triton.cdiv(a.numel(), 64),)](a, b, c, a.numel(), BLOCK=64)
    return c
"""


def test_each_language_is_built_judged_and_timed(worker: DeviceWorker) -> None:
    contestants = [
        solution(ADD, CPP, language="cpp", destination_passing_style=True),
        solution(ADD, "int main( {\n", language="cpp", destination_passing_style=True),
        solution(ADD, TRITON, language="triton"),
        solution(ADD, "kernel", language="cuda"),
    ]
    result = worker.visit(request(ADD, contestants, [workload(ADD, N=n) for n in (1, 100)]))
    assert result.fault is None, result.fault
    compile_error = [(Status.COMPILE_ERROR, "build")] * 2
    passed = [(Status.PASSED, None)] * 2
    found = [(evaluation.status, evaluation.rule) for evaluation in result.evaluations]
    assert found == passed + compile_error + passed + compile_error
    assert "k.cc:1" in result.evaluations[2].log
    assert all(len(result.evaluations[index].samples_us) == 5 for index in (0, 1, 4, 5))

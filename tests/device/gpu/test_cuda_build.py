"""CUDA C++ solutions on a real device: compiled for it, called with torch tensors, on torch's stream."""

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from forks import in_fork
from test_cuda import VECTOR_ADD, cuda_solution

from fib_core import builders

pytestmark = pytest.mark.gpu
DIGEST = "sha256:" + "ac" * 32
TORCH_ADD = """
#include <torch/extension.h>
__global__ void add(const float* a, const float* b, float* c, int64_t n) {
  int64_t i = blockIdx.x * int64_t{256} + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
void run(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
  add<<<(a.numel() + 255) / 256, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), a.numel());
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


def _added(solution: Any, cache: Path) -> dict[str, Any]:
    started = time.monotonic()
    run = builders.load(solution, DIGEST, cache)
    built_s = time.monotonic() - started
    a, b = torch.randn(100_003, device="cuda"), torch.randn(100_003, device="cuda")
    c = torch.full_like(a, torch.nan)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        run(a, b, c)
    torch.cuda.synchronize()
    return {"equal": torch.equal(c, a + b), "seconds": built_s}


def test_a_vector_add_is_compiled_once_and_adds(tmp_path: Path) -> None:
    first = in_fork(lambda: _added(cuda_solution(), tmp_path), 130)
    again = in_fork(lambda: _added(cuda_solution(), tmp_path), 130)
    assert (first.get("equal"), again.get("equal")) == (True, True), (first, again)
    assert again["seconds"] < 2 < first["seconds"]
    wrong = in_fork(lambda: _added(cuda_solution(VECTOR_ADD.replace("a[i] + b[i]", "a[i] - b[i]")), tmp_path), 130)
    assert wrong.get("equal") is False, wrong


@pytest.mark.slow
def test_a_torch_extension_in_cuda_is_compiled_and_adds(tmp_path: Path) -> None:
    solution = cuda_solution(TORCH_ADD)
    solution = solution.model_copy(update={"spec": solution.spec.model_copy(update={"binding": "torch"})})
    found = in_fork(lambda: _added(solution, tmp_path), 150)
    assert found.get("equal") is True, found

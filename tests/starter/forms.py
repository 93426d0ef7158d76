"""Calibration kernels on a host without a GPU: Triton in its interpreter, CUDA C++ as host C++ behind a shim.

In: how many percent are done twice. Out: an entry point. The shim runs one lane after the
other, which is what these kernels mean: no lane waits for another.
"""

import ctypes
import importlib.util
import math
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from fib_core import builders
from schemas.solution import Solution

CALIBRATION = Path(__file__).resolve().parents[2] / "infra" / "calibration"
COLUMNS, TERMS, DOZEN = 64, 1200, 12
_SHIM = """
#include <cmath>
#include <cstdint>
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
struct Place { unsigned x; };
static Place blockIdx, threadIdx;
#include "KERNEL"
extern "C" void run(const float* x, const float* weight, float* out, int64_t rows, int dozens, int again) {
  for (blockIdx.x = 0; blockIdx.x < BLOCKS; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < LANES; ++threadIdx.x) series_rows(x, weight, out, rows, dozens, again);
}
"""
Form = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]
"""An entry point that fills its last argument."""


def made_by(name: str) -> types.ModuleType:
    """A script of ``infra/calibration`` as a module."""
    sys.path.insert(0, str(CALIBRATION))
    try:
        spec = importlib.util.spec_from_file_location(f"calibration_{name}", CALIBRATION / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # a dataclass looks its module up
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(CALIBRATION))
    return module


def triton_form(percent: int, folder: Path) -> Form:
    """The Triton kernel, narrower, under the interpreter."""
    make, kernel = made_by("make"), made_by("kernel_rows").SETS["data_cuda"]["series_c1664_triton"]
    body = make.solution("small", kernel, "aa", "baseline", percent)
    body["sources"][1]["content"] = make.sizes_file({"columns": COLUMNS, "terms": TERMS}, percent)
    solution = Solution.model_validate(body)
    return builders.load(solution, solution.digest_for("sha256:" + "0" * 64), folder)


def cuda_form(percent: int, folder: Path, change: Callable[[str], str] = str) -> Form:
    """The CUDA kernel compiled for the host; ``change`` edits its source first."""
    (folder / "series.cuh").write_text(change((CALIBRATION / "kernels" / "series.cuh").read_text()))
    (folder / "shim.cpp").write_text(_SHIM.replace("KERNEL", "series.cuh"))
    options = ["-O2", "-std=c++17", "-shared", "-fPIC", f"-DCOLUMNS={COLUMNS}", f"-DTERMS={TERMS}"]
    library = folder / "shim.so"
    subprocess.run(["g++", *options, str(folder / "shim.cpp"), "-o", str(library)], check=True, timeout=120)
    run = ctypes.CDLL(str(library)).run
    run.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64, ctypes.c_int, ctypes.c_int]
    dozens = TERMS // DOZEN

    def entry(x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor) -> None:
        run(x.data_ptr(), weight.data_ptr(), out.data_ptr(), x.shape[0], dozens, 1 + dozens * percent // 100)

    return entry


def filled(form: Form, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """What the form writes where nothing was; what it leaves out is no number."""
    out = torch.full_like(x, math.nan)
    form(x, weight, out)
    return out

"""CUDA builder where there may be no GPU: options, targets, cache names and clear words when a tool is missing."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core import builders
from fib_core.builders import compile_cuda, nvidia, toolchain
from fib_core.errors import BuildError
from schemas.solution import Solution

GOOD = (
    "-O2", "-std=c++20", "-DTILE=64", "--use_fast_math", "-use_fast_math", "--fmad=false", "--maxrregcount=128",
    "--extended-lambda", "--expt-extended-lambda", "-Xptxas=-dlcm=cg", "-lineinfo", "-lcublasLt",
)  # fmt: skip
BAD = (
    "-ccbin=/tmp/x", "-Xcompiler=-fplugin=x.so", "--compiler-options=x", "-I/etc", "-L/tmp", "-lfoo", "-o", "/tmp/x.so",
    "-include=x", "--options-file=x", "-odir=/", "-O9", "-std=c++98", "--fmad=perhaps", "-Xptxas=--output-file=x",
    "-gencode=arch=x", "--keep", "-DX=`id`", "--run", "",
)  # fmt: skip
VECTOR_ADD = """
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>
__global__ void add(const float* a, const float* b, float* c, int64_t n) {
  int64_t i = blockIdx.x * int64_t{256} + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
void run(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  int64_t n = a.size(0);
  auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(a.device().device_type, a.device().device_id));
  add<<<(n + 255) / 256, 256, 0, stream>>>(static_cast<const float*>(a.data_ptr()),
      static_cast<const float*>(b.data_ptr()), static_cast<float*>(c.data_ptr()), n);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
"""
H200 = nvidia.Gpu(0, "GPU-1", "NVIDIA H200", (9, 0), "580.0", 1, 0, None, 1980.0)
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")


def cuda_solution(source: str = VECTOR_ADD, options: tuple[str, ...] = (), name: str = "k.cu") -> Solution:
    spec = {"language": "cuda", "target_hardware": ["cuda"], "entry_point": f"{name}::run", "compile_options": options}
    files = [{"path": name, "content": source}]
    return Solution.model_validate({"name": "s", "definition": "d", "author": "t", "spec": spec, "sources": files})


def test_only_listed_options_reach_nvcc() -> None:
    assert compile_cuda.checked_options(cuda_solution(options=GOOD)) == GOOD
    for option in BAD:
        with pytest.raises(BuildError, match="not allowed for cuda"):
            compile_cuda.checked_options(cuda_solution(options=(option,)))


@given(st.sampled_from(GOOD), st.sampled_from((" ", ",", "\n", ";", "=", "@")), st.text(min_size=1, max_size=8))
def test_nothing_rides_on_an_allowed_option(option: str, glue: str, tail: str) -> None:
    solution = cuda_solution(options=(option + glue + tail,))
    with pytest.raises(BuildError, match="not allowed"):
        compile_cuda.checked_options(solution)


def test_machine_code_is_for_one_architecture_with_its_own_instructions_from_hopper_on() -> None:
    assert compile_cuda.architecture_flag((9, 0)) == "-gencode=arch=compute_90a,code=sm_90a"
    assert compile_cuda.architecture_flag((12, 0)) == "-gencode=arch=compute_120a,code=sm_120a"
    assert compile_cuda.architecture_flag((8, 9)) == "-gencode=arch=compute_89,code=sm_89"


def test_no_device_and_no_nvcc_are_this_hosts_fault_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "load_nvml", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(toolchain.ToolchainMissing, match="no CUDA device"):
        builders.load(cuda_solution(), "sha256:" + "5" * 64, tmp_path)
    monkeypatch.setattr(nvidia, "visible_gpu", lambda: H200)
    monkeypatch.setenv("CUDACXX", "nvcc-of-nobody")
    with pytest.raises(toolchain.ToolchainMissing, match=r"nvcc-of-nobody.*CUDACXX"):
        builders.load(cuda_solution(), "sha256:" + "5" * 64, tmp_path)


@needs_nvcc
def test_the_cache_name_follows_content_options_architecture_and_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(solution: Solution, target: str = "-gencode=arch=compute_90a,code=sm_90a") -> str:
        return compile_cuda.artefact_key(solution, (*solution.spec.compile_options, target))

    plain = key(cuda_solution())
    others = {
        key(cuda_solution(VECTOR_ADD + "\n")), key(cuda_solution(options=("-O1",))), key(cuda_solution(name="l.cu")),
        key(cuda_solution(), "-gencode=arch=compute_89,code=sm_89"),
    }  # fmt: skip
    assert len(others | {plain}) == 5
    assert key(cuda_solution()) == plain
    monkeypatch.setattr(compile_cuda, "nvcc_version", lambda path: "V99.0.1")
    assert key(cuda_solution()) != plain


@needs_nvcc
def test_nvcc_compiles_once_and_its_complaint_is_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "visible_gpu", lambda: H200)
    with pytest.raises(BuildError, match="as cuda") as failed:
        compile_cuda.ensure_compiled(cuda_solution("int main( {\n"), tmp_path, 60)
    assert "k.cu(1)" in failed.value.log
    assert str(tmp_path) not in failed.value.log
    small = cuda_solution("__global__ void k() {}\nvoid run() { k<<<1, 1>>>(); }\n")
    library = compile_cuda.ensure_compiled(small, tmp_path, 100)
    monkeypatch.setattr(compile_cuda, "_compile", lambda *_: pytest.fail("compiled again"))
    assert compile_cuda.ensure_compiled(small, tmp_path, 100) == library
    assert library.read_bytes().startswith(b"\x7fELF")

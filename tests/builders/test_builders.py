"""Builders: each language ends in a callable or an error that says why; artefacts are keyed by content and tools."""

import sys
import threading
from pathlib import Path

import pytest
import torch

from fib_core import builders
from fib_core.builders import compile_cpp
from fib_core.builders.compile_cpp import ensure_compiled, run_compiler
from fib_core.errors import BuildError, EntryPointError
from schemas.solution import Solution

DIGEST = "sha256:" + "ab" * 32
CPP = """
#include <tvm/ffi/tvm_ffi.h>
void run(tvm::ffi::TensorView a, tvm::ffi::TensorView c, double factor) {
  const float* x = static_cast<const float*>(a.data_ptr());
  float* z = static_cast<float*>(c.data_ptr());
  for (int64_t i = 0; i < a.size(0); ++i) z[i] = x[i] * static_cast<float>(factor);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
"""
TRITON = """
import torch
import triton
import triton.language as tl

@triton.jit
def _double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def run(x):
    y = torch.empty_like(x)
    _double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
"""


def _solution(sources: dict[str, str], entry: str, language: str = "python", **spec: object) -> Solution:
    body = {"language": language, "target_hardware": ["cpu"], "entry_point": entry} | spec
    files = [{"path": path, "content": content} for path, content in sources.items()]
    return Solution.model_validate({"name": "s", "definition": "d", "author": "t", "spec": body, "sources": files})


def test_siblings_are_found_relative_and_absolute_and_two_solutions_do_not_meet(tmp_path: Path) -> None:
    styles = ("from .helper import VALUE", "from helper import VALUE", "import helper\nVALUE = helper.VALUE")
    for number, style in enumerate(styles):
        sources = {"pkg/main.py" if number == 0 else "main.py": f"{style}\ndef run():\n    return VALUE\n"}
        sources["pkg/helper.py" if number == 0 else "helper.py"] = f"VALUE = {number}\n"
        entry = next(iter(sources)) + "::run"
        digest = f"sha256:{number:064x}".replace("0" * 16, "f" * 15 + str(number), 1)
        assert builders.load(_solution(sources, entry), digest, tmp_path)() == number
    assert "helper" not in sys.modules
    assert not [path for path in sys.path if str(tmp_path) in path]


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(EntryPointError, match="run"):
        builders.load(_solution({"a.py": "x = 1\n"}, "a.py::run"), "sha256:" + "1" * 64, tmp_path)
    with pytest.raises(BuildError, match="SyntaxError"):
        builders.load(_solution({"a.py": "def (\n"}, "a.py::run"), "sha256:" + "2" * 64, tmp_path)
    with pytest.raises(BuildError, match="no_such"):
        builders.load(_solution({"a.py": "import no_such\n"}, "a.py::run"), "sha256:" + "3" * 64, tmp_path)
    with pytest.raises(BuildError, match="cuda"):
        builders.load(_solution({"a.cu": "x"}, "a.cu::run", "cuda"), "sha256:" + "4" * 64, tmp_path)
    with pytest.raises(BuildError, match="not allowed"):
        ensure_compiled(_solution({"a.cc": CPP}, "a.cc::run", "cpp", compile_options=("-fplugin=x.so",)), tmp_path, 9)


def test_triton_runs_in_the_interpreter_where_there_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    run = builders.load(_solution({"t.py": TRITON}, "t.py::run", "triton"), DIGEST, tmp_path)
    x = torch.arange(100, dtype=torch.float32)
    assert torch.equal(run(x), x * 2)


def test_cpp_is_compiled_once_by_racing_builders_and_again_for_other_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[list[str]] = []

    def counted(command: list[str], limit_s: float) -> tuple[int, str]:
        compiled.append(command)
        return run_compiler(command, limit_s)

    monkeypatch.setattr(compile_cpp, "run_compiler", counted)
    solution = _solution({"k.cc": CPP}, "k.cc::run", "cpp")
    paths: list[Path] = []
    threads = [threading.Thread(target=lambda: paths.append(ensure_compiled(solution, tmp_path, 60))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 1
    racing = len(compiled)
    assert 1 <= racing <= 2, "both may start; one result stays"
    x, y = torch.ones(5), torch.empty(5)
    builders.load(solution, DIGEST, tmp_path)(x, y, 3.0)
    assert torch.equal(y, x * 3)
    assert ensure_compiled(solution, tmp_path, 60) == paths[0]
    assert len(compiled) == racing, "what is there is not compiled again"
    faster = _solution({"k.cc": CPP}, "k.cc::run", "cpp", compile_options=("-O1",))
    assert ensure_compiled(faster, tmp_path, 60) != paths[0]
    assert len(compiled) == racing + 1
    assert not list(tmp_path.glob(".*")), "no half-built directory stays"


def test_the_compiler_speaks_in_the_error_and_is_stopped_at_its_limit(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as failed:
        ensure_compiled(_solution({"k.cc": "int main( {\n"}, "k.cc::run", "cpp"), tmp_path, 60)
    assert "k.cc:1" in failed.value.log
    endless = "#include <tvm/ffi/tvm_ffi.h>\n" * 2 + "template <int N> struct A { static const long v = A<N-1>::v; };\n"
    with pytest.raises(BuildError, match="stopped"):
        ensure_compiled(_solution({"k.cc": endless}, "k.cc::run", "cpp"), tmp_path, 0.05)
    with pytest.raises(EntryPointError):
        builders.load(_solution({"k.cc": CPP}, "k.cc::walk", "cpp"), DIGEST, tmp_path)


@pytest.mark.slow
def test_a_torch_extension_is_compiled_and_loaded(tmp_path: Path) -> None:
    source = (
        "#include <torch/extension.h>\ntorch::Tensor run(torch::Tensor x) { return x * 2; }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }\n'
    )
    run = builders.load(_solution({"k.cpp": source}, "k.cpp::run", "cpp", binding="torch"), DIGEST, tmp_path)
    assert torch.equal(run(torch.ones(3)), torch.full((3,), 2.0))

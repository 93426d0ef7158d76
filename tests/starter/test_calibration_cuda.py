"""Calibration kernels for a CUDA device: what is said to be done twice is done twice, and changes no result."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from fib_core.builders import compile_cuda, nvidia
from fib_core.split import stress_workloads
from fib_core.workloads.families import family_name, sides_for
from schemas.definition import Definition
from schemas.solution import Solution
from tests.starter.forms import CALIBRATION, COLUMNS, TERMS, Form, cuda_form, filled, made_by, triton_form

SHARES = {0: 12, 2: 36, 5: 72}
H200 = nvidia.Gpu(0, "GPU-1", "NVIDIA H200", (9, 0), "580.0", 1, 0, None, 1980.0)
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")
both = pytest.mark.parametrize("make_form", [triton_form, cuda_form], ids=["triton", "cuda"])
MakeForm = Callable[[int, Path], Form]


def _definitions() -> list[Definition]:
    paths = sorted((CALIBRATION / "data_cuda" / "definitions").rglob("*.json"))
    return [Definition.model_validate_json(path.read_bytes()) for path in paths]


def _reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    scope: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {}
    exec(_definitions()[0].reference, scope)
    return scope["run"](x.double(), weight.double())


def test_both_datasets_are_what_the_script_writes_and_a_changed_file_is_noticed(tmp_path: Path) -> None:
    make = made_by("make")
    assert [make.renew(name, only_check=True) for name in make.SETS] == [True, True]
    make.HERE = tmp_path
    shutil.copytree(CALIBRATION, tmp_path, dirs_exist_ok=True)
    (tmp_path / "data_cuda" / "README.md").write_text("other words\n")
    assert not make.renew("data_cuda", only_check=True)


@both
def test_the_slowed_form_gives_the_same_bits_as_the_plain_one_and_what_the_reference_says(
    make_form: MakeForm, tmp_path: Path
) -> None:
    generator = torch.Generator().manual_seed(7)
    x, weight = torch.randn(10, COLUMNS, generator=generator), torch.randn(COLUMNS, generator=generator)
    results = {}
    for percent in SHARES:
        (tmp_path / str(percent)).mkdir()
        results[percent] = filled(make_form(percent, tmp_path / str(percent)), x, weight)
    assert all(torch.equal(result, results[0]) for result in results.values())
    torch.testing.assert_close(results[0].double(), _reference(x, weight), rtol=2e-6, atol=1e-6)
    assert not torch.equal(results[0][0], results[0][1])


@both
@pytest.mark.parametrize("percent", SHARES)
def test_exactly_the_declared_share_of_terms_is_added_up_twice(
    make_form: MakeForm, percent: int, tmp_path: Path
) -> None:
    form, counting = make_form(percent, tmp_path), made_by("counting")
    assert counting.terms_forgotten(form, COLUMNS, limit=127) == SHARES[percent]
    assert counting.has_added(form, COLUMNS, TERMS)
    assert not counting.has_added(form, COLUMNS, TERMS + 1)


def test_a_compiler_that_drops_the_forgotten_sum_would_be_noticed(tmp_path: Path) -> None:
    dropped = cuda_form(5, tmp_path, lambda text: text.replace("add_terms(0.0f, t, w, again) * 0.0f", "0.0f"))
    assert made_by("counting").terms_forgotten(dropped, COLUMNS, limit=127) == 0
    assert made_by("counting").has_added(dropped, COLUMNS, TERMS)


@needs_nvcc
def test_device_code_of_cuda_holds_both_sums(tmp_path: Path) -> None:
    text = (CALIBRATION / "kernels" / "series.cuh").read_text()
    without = text.replace("add_terms(0.0f, t, w, again) * 0.0f", "0.0f")
    assert without != text
    code, other = _ptx(text, tmp_path), _ptx(without, tmp_path)
    assert re.search(r"mul(\.rn)?\.f32[^;]*, 0f00000000;", code)
    assert not re.search(r"mul(\.rn)?\.f32[^;]*, 0f00000000;", other)
    assert code.count("fma.rn.f32") >= other.count("fma.rn.f32") + 12


def _ptx(text: str, folder: Path) -> str:
    (folder / "k.cu").write_text(text.replace("#pragma once", ""))
    command = ["nvcc", "-ptx", *compile_cuda.BASE_FLAGS, "-arch=sm_90a", "-DCOLUMNS=704", "-DTERMS=1200"]
    subprocess.run([*command, str(folder / "k.cu"), "-o", str(folder / "k.ptx")], check=True, timeout=120)
    return (folder / "k.ptx").read_text()


_COMPILE = """
import sys; sys.path.insert(0, sys.argv[1])
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
import series
names = ["x", "weight", "out", "rows", "dozens", "again"]
consts = {"COLUMNS": 1664, "BLOCK": series.BLOCK, "STEP": series.ROWS_AT_ONCE, "DOZEN": series.DOZEN}
types = dict(zip(names, ["*fp32"] * 3 + ["i32"] * 3)) | dict.fromkeys(consts, "constexpr")
source = ASTSource(series.series_rows, signature=types, constexprs=consts)
options = {"num_warps": series.WARPS, "num_stages": 1}
print(compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"])
"""


def test_device_code_of_triton_holds_both_sums(tmp_path: Path) -> None:
    text = (CALIBRATION / "kernels" / "series.py").read_text()
    without = text.replace("        total = total * 0.0 ", "        total = tl.zeros([BLOCK], tl.float32) ")
    assert without != text
    assert _triton_ptx(text, tmp_path).count("fma.rn.f32") == 24
    assert _triton_ptx(without, tmp_path).count("fma.rn.f32") == 12


def _triton_ptx(text: str, folder: Path) -> str:
    (folder / "series.py").write_text(text)
    (folder / "sizes.py").write_text("COLUMNS, TERMS, REDO_PERCENT = 1664, 1200, 2\n")
    around = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", _COMPILE, str(folder)]
    environment = around | {"TRITON_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@needs_nvcc
@pytest.mark.slow
def test_the_solution_compiles_for_an_h200_as_the_worker_would_compile_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia, "visible_gpu", lambda: H200)
    path = next((CALIBRATION / "data_cuda" / "solutions").rglob("slow5_series_c704__incumbent.json"))
    solution = Solution.model_validate_json(path.read_bytes())
    assert compile_cuda.ensure_compiled(solution, tmp_path, 200).read_bytes().startswith(b"\x7fELF")
    broken = solution.model_copy(update={"sources": solution.sources[:1]})
    with pytest.raises(compile_cuda.BuildError, match="does not compile"):
        compile_cuda.ensure_compiled(broken, tmp_path, 200)


def test_every_definition_has_keys_to_decide_a_holdout_and_no_invented_shape() -> None:
    kernels = made_by("kernel_rows").SETS["data_cuda"].values()
    for definition in _definitions():
        sizes = next(item.sizes for item in kernels if item.axes["columns"] == definition.const_axes["columns"])
        families = [family_name({"M": size}, "") for size in sizes]
        sides = sides_for(definition.digest, families, "fib-split-1")
        assert len(sides) == 9, "one family a size"
        assert sorted(sides.values()).count("train") == 8
        assert stress_workloads(definition) == []
        free = definition.model_copy(update={"constraints": ()})
        assert stress_workloads(free), "the constraint is what keeps them away"


def test_a_kernels_grid_fits_an_h200_at_once() -> None:
    for definition in _definitions():
        lanes = 64 if "triton" in definition.name else 32
        assert definition.const_axes["columns"] % lanes == 0
        assert 100 <= 5 * definition.const_axes["columns"] // lanes <= 132

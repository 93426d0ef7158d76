"""Measure and check this folder's kernels: every solution of a definition against its fp64 reference, one core, one thread.

``python infra/starter/ops_b/bench.py gqa_paged_decode_h32_kv8_d64_ps16 [...]`` prints error and median time per shape.
It reads the sources through ``make.py``, so that what is measured is what the dataset holds. A development tool.
"""

import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT))

from fib_core.workloads.structure import generate, recipes_for  # noqa: E402
from schemas.definition import Definition  # noqa: E402
from schemas.workload import ScalarInput, StructuredInput  # noqa: E402

DTYPES = {name: getattr(torch, name) for name in ("float32", "bfloat16", "float8_e4m3fn", "int32", "int64")}


def load(path: Path, name: str) -> ModuleType:
    """Import one file by path."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = load(HERE.parent / "make.py", "starter_make")


def definitions() -> dict[str, tuple[Path, dict[str, Any]]]:
    """Definitions of this folder with their op folder."""
    folders = sorted(path.parent for path in HERE.glob("*/spec.py"))
    found = {}
    for folder in folders:
        found |= {row["name"]: (folder, make.read_definition(folder, row)) for row in make.load_module(folder / "spec.py").DEFINITIONS}
    return found


def solutions(name: str) -> list[dict[str, Any]]:
    """Public solutions of one definition, incumbents in their declared order first."""
    folder, definition = definitions()[name]
    spec = make.load_module(folder / "spec.py")
    return [make.read_solution(folder, row, definition) for row in spec.SOLUTIONS if name in row["definitions"]]


def solution_of(name: str, label: str) -> dict[str, Any]:
    """One public solution by its full name."""
    return next(row for row in solutions(name) if row["name"] == label)


def python_callable(source: str, symbol: str, label: str) -> Callable[..., Any]:
    """Compile Python text and pick one function."""
    space: dict[str, Any] = {"__name__": label}
    exec(compile(source, label, "exec"), space)  # noqa: S102
    return space[symbol]


def native_callable(solution: dict[str, Any], scratch: Path) -> Callable[..., Any]:
    """Compile with the flags of the project's builder and load."""
    import tvm_ffi

    folder = scratch / solution["name"]
    folder.mkdir(parents=True, exist_ok=True)
    for source in solution["sources"]:
        (folder / source["path"]).write_text(source["content"], encoding="utf-8")
    entry, symbol = solution["spec"]["entry_point"].split("::")
    config = str(Path(sys.executable).parent / "tvm-ffi-config")
    flags = {flag: subprocess.check_output([config, flag], text=True).split() for flag in ("--cxxflags", "--ldflags", "--libs")}
    command = ["g++", "-O3", "-march=native", "-std=c++17", "-fPIC", "-shared", *flags["--cxxflags"], entry, "-o", "k.so"]
    command += [*flags["--ldflags"], *flags["--libs"], *solution["spec"].get("compile_options", ())]
    subprocess.run(command, cwd=folder, check=True)
    return tvm_ffi.load_module(str(folder / "k.so"))[symbol]


def build(solution: dict[str, Any], scratch: Path) -> Callable[..., Any]:
    """The solution as a callable that returns a tuple; buffers of a destination-passing one come from the caller's call."""
    if solution["spec"]["language"] == "cpp":
        return native_callable(solution, scratch)
    if solution["spec"]["language"] == "triton":
        path = scratch / f"{solution['name']}.py"
        path.write_text(solution["sources"][0]["content"], encoding="utf-8")
        return getattr(load(path, solution["name"]), solution["spec"]["entry_point"].split("::")[1])
    return python_callable(solution["sources"][0]["content"], solution["spec"]["entry_point"].split("::")[1], solution["name"])


def inputs_for(definition: Definition, axes: dict[str, int], structure: dict[str, Any], scalars: dict[str, Any]) -> dict[str, Any]:
    """Seeded inputs from the project's recipes."""
    generator = torch.Generator().manual_seed(1)
    made: dict[str, Any] = {}
    for name, recipe in recipes_for(definition, axes, structure, scalars).items():
        spec, shape = definition.inputs[name], definition.shape_of(name, axes)
        if isinstance(recipe, ScalarInput):
            made[name] = recipe.value
        elif isinstance(recipe, StructuredInput):
            made[name] = torch.as_tensor(generate(recipe)).to(DTYPES[spec.dtype])
        else:
            values = torch.randn(shape, generator=generator)
            values = {"block_scale": lambda v: (v.abs() + 0.5) * 1e-2, "routing_logits": lambda v: 2 * v, "routing_bias": lambda v: 0.01 * v}.get(
                getattr(recipe, "distribution", None) or "", lambda v: v
            )(values)
            made[name] = values.to(DTYPES[spec.dtype])
    return made


def outputs_for(definition: Definition, axes: dict[str, int]) -> list[torch.Tensor]:
    """NaN-poisoned buffers."""
    return [torch.full(definition.shape_of(name, axes), torch.nan, dtype=DTYPES[spec.dtype]) for name, spec in definition.outputs.items()]


def expected(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """The reference on fp64 copies of the float inputs (fp8 stays as it is)."""
    run = python_callable(definition.reference, "run", "reference")
    wide = {k: v.double() if torch.is_tensor(v) and v.is_floating_point() else v for k, v in inputs.items()}
    found = run(*wide.values())
    return found if isinstance(found, tuple) else (found,)


def bad_share(want: torch.Tensor, got: torch.Tensor, output: str) -> float:
    """Largest error over its tolerance (bf16 rule: atol scaled by the RMS; lse absolute); inf where finiteness differs."""
    want, got = want.double(), got.double()
    if not torch.equal(torch.isfinite(want), torch.isfinite(got)) or got.isnan().any():
        return float("inf")
    seen = torch.isfinite(want)
    want, got = want[seen], got[seen]
    if want.numel() == 0:
        return 0.0
    tolerance = 1e-3 * (1 + want.abs()) if output == "lse" else 1e-2 * (want.square().mean().sqrt() + want.abs())
    return float(((want - got).abs() / tolerance.clamp_min(1e-30)).max())


def median_us(call: Callable[[], Any], samples: int = 15) -> float:
    """Median CPU time of calls on a warm function; CPU time, because a developer's machine has other work to do."""
    times = []
    for index in range(samples + 3):
        start = time.thread_time_ns()
        call()
        if index >= 3:
            times.append((time.thread_time_ns() - start) / 1e3)
    return statistics.median(times)


def measure(name: str, points: Iterable[tuple[dict[str, int], dict[str, Any], dict[str, Any]]], scratch: Path) -> list[dict[str, Any]]:
    """One row per (point, solution): error share and median time, interleaved over solutions."""
    definition = Definition.model_validate(definitions()[name][1])
    built = [(solution, build(solution, scratch)) for solution in solutions(name)]
    rows = []
    for axes, structure, scalars in points:
        inputs = inputs_for(definition, axes, structure, scalars)
        start = time.thread_time_ns()
        want = expected(definition, inputs)
        reference_us = (time.thread_time_ns() - start) / 1e3
        for solution, function in built:
            buffers = outputs_for(definition, axes)
            if solution["spec"]["destination_passing_style"]:
                arguments = [*inputs.values(), *buffers]
                function(*arguments)
                got: tuple[torch.Tensor, ...] = tuple(buffers)
            else:
                arguments = list(inputs.values())
                found = function(*arguments)
                got = found if isinstance(found, tuple) else (found,)
            share = max(bad_share(w, g, output) for w, g, output in zip(want, got, definition.outputs, strict=True))
            us = median_us(lambda f=function, a=arguments: f(*a))
            rows.append({"axes": axes, "structure": structure, "name": solution["name"].split("__")[1], "share": share, "us": us, "reference_us": reference_us})
    return rows


def main() -> int:
    """Print a table per definition over its call log's distinct shapes (every ``FIB_EVERY``-th)."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    calls = load(HERE.parent / "calls.py", "starter_calls")
    every = int(os.environ.get("FIB_EVERY", "1"))
    for name in sys.argv[1:]:
        points = calls.distinct_points(definitions()[name][1])[::every]
        rows = measure(name, points, Path("/tmp") / "starter_bench")
        names = list(dict.fromkeys(row["name"] for row in rows))
        print(name, names)
        for index in range(0, len(rows), len(names)):
            group = rows[index : index + len(names)]
            fastest = min(row["us"] for row in group if row["name"] not in ("blocked", "fused", "tl_decode"))
            cells = " ".join(f"{row['us']:8.0f}({row['share']:.2f})" for row in group)
            print(f"{group[0]['axes']} ref {group[0]['reference_us']:.0f} us | {cells} | x{fastest / group[-1]['us']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

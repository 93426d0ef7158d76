"""Runs this half's ``scale:gpu`` solutions on a CUDA device: error against the reference, median time by CUDA events.

In: the dataset that ``make.py`` wrote. Out: one line per solution and workload. Needs torch and triton only, so that it runs on
a bare GPU machine. A development tool, not the judge: the timer is the event pair, with launch costs in it.
"""

import importlib.util
import json
import statistics
import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent / "data"
OPS = ("gemm", "rmsnorm", "rope", "sampling")


def tensor(name, spec, recipe, axes):
    """One input on the device."""
    shape = [axes[axis] for axis in spec["shape"]]
    dtype = getattr(torch, spec["dtype"])
    if recipe["type"] == "structured":
        params = recipe["params"]
        if recipe["generator"] == "positions":
            runs = zip(params["starts"], params["lengths"], strict=True)
            return torch.tensor([start + i for start, length in runs for i in range(length)], dtype=dtype, device="cuda")
        return torch.tensor((params["values"] * params["count"])[: params["count"]], dtype=dtype, device="cuda")
    noise = torch.randn(shape, device="cuda")
    kind = recipe.get("distribution")
    if kind == "probs":
        noise = torch.softmax(noise * 2, dim=-1)
    elif kind == "weight":
        noise = noise / shape[-1] ** 0.5
    elif kind == "norm_weight":
        noise = 1 + 0.1 * noise
    elif kind == "cos_sin_cache":
        half = shape[1] // 2
        angle = torch.arange(shape[0], device="cuda")[:, None] * 1e4 ** (-torch.arange(half, device="cuda") / half)
        noise = torch.cat((angle.cos(), angle.sin()), dim=1)
    return noise.to(dtype)


def entry(solution, folder):
    """Import the entry file from disk (Triton reads its source)."""
    file, symbol = solution["spec"]["entry_point"].split("::")
    path = Path(folder) / (solution["name"] + "_" + file)
    path.write_text(solution["sources"][0]["content"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, symbol)


def time_us(call):
    """Median over 20 event pairs after 3 calls."""
    for _ in range(3):
        call()
    samples = []
    for _ in range(20):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) * 1e3)
    return statistics.median(samples)


def check(definition, solution, run, inputs, wanted, axes):
    """Worst error in units of the tolerance (1e-2 of bf16, 1e-3 of fp16), and the time."""
    mine = {name: value.clone() for name, value in inputs.items()}
    arguments, mutated = list(mine.values()), definition.get("mutates", {})
    outputs = {}
    if solution["spec"]["destination_passing_style"]:
        for name, spec in definition["outputs"].items():
            if name not in mutated.values():
                outputs[name] = torch.full([axes[a] for a in spec["shape"]], float("nan"), dtype=getattr(torch, spec["dtype"]), device="cuda")
        run(*arguments, *outputs.values())
        arguments += outputs.values()
    else:
        result = run(*arguments)
        outputs = dict(zip([n for n in definition["outputs"] if n not in mutated.values()], result if isinstance(result, tuple) else (result,), strict=True))
    outputs |= {result: mine[source] for source, result in mutated.items()}
    worst = 0.0
    for name, spec in definition["outputs"].items():
        if definition["op_type"] == "sampling":
            worst = max(worst, float((wanted.gather(1, outputs[name][:, None]) <= 0).sum()))
            continue
        tolerance = 1e-3 if spec["dtype"] == "float16" else 1e-2
        right = wanted[name].double()
        slack = tolerance * (right.square().mean().sqrt() + right.abs())
        worst = max(worst, float(((outputs[name].double() - right).abs() / slack).max().nan_to_num(nan=1e9)))
    return worst, time_us(lambda: run(*arguments))


def main():
    """Every GPU definition of the chosen ops."""
    torch.set_grad_enabled(False)
    for op in sys.argv[1:] or OPS:
        for path in sorted(ROOT.glob(f"definitions/{op}/*.json")):
            definition = json.loads(path.read_text())
            if "scale:gpu" not in definition["tags"]:
                continue
            scope = {}
            exec(definition["reference"], scope)
            solutions = [json.loads(file.read_text()) for file in sorted(ROOT.glob(f"solutions/*/{op}/{path.stem}/*.json"))]
            rows = [json.loads(line)["workload"] for line in (ROOT / f"workloads/{op}/{path.stem}.jsonl").read_text().splitlines()]
            with tempfile.TemporaryDirectory() as folder:
                runs = [(solution, entry(solution, folder)) for solution in solutions]
                for row in rows:
                    axes = {name: axis["value"] for name, axis in definition["axes"].items() if axis["type"] == "const"} | row["axes"]
                    inputs = {name: tensor(name, spec, row["inputs"][name], axes) for name, spec in definition["inputs"].items()}
                    if op == "sampling":
                        wanted = scope["distribution"](*inputs.values())
                    else:
                        result = scope["run"](*[v.double() if v.is_floating_point() else v for v in inputs.values()])
                        wanted = dict(zip(definition["outputs"], result if isinstance(result, tuple) else (result,), strict=True))
                    for solution, run in runs:
                        try:
                            worst, median = check(definition, solution, run, inputs, wanted, axes)
                            print(f"{path.stem} {row['axes']} {solution['name'].split('__')[1]}: {worst:.2f} of tolerance, {median:.1f} us")
                        except Exception as error:
                            print(f"{path.stem} {row['axes']} {solution['name'].split('__')[1]}: {type(error).__name__}: {str(error)[:200]}")


if __name__ == "__main__":
    main()

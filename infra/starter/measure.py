"""Times the solutions of a starter definition against each other, as fairly as one script can: one core, one thread, in turns.

In: the dataset that ``make.py`` wrote. Out: a table of medians (us) and ratios to the first incumbent. Every round has fresh
inputs, shared by all solutions; inside a round the order is shuffled. Mutated inputs are restored from a private copy outside
the clock; output buffers of destination-passing solutions are allocated outside it, as the harness does. Not a judge: wrong
kernels are timed too, so name the ones you want with ``--only`` (several at a time, comma-separated).

    python infra/starter/measure.py rmsnorm_h1024 --points batch_size=1 batch_size=64 --only aten,fp32,two_pass
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import torch  # noqa: E402

from fib_core.builders import load  # noqa: E402
from fib_core.device.inputs import build_inputs  # noqa: E402
from fib_core.device.regions import torch_dtype  # noqa: E402
from fib_core.workloads.structure import recipes_for  # noqa: E402
from schemas.definition import Definition  # noqa: E402
from schemas.solution import Solution  # noqa: E402
from schemas.workload import Workload  # noqa: E402

ROPE = {"num_qo_heads": 32, "num_kv_heads": 8, "max_seq_len": 4096}
POINTS = {
    "gemm": [{"M": rows} for rows in (1, 2, 4, 8, 16, 32)],
    "rmsnorm": [{"batch_size": rows} for rows in (1, 4, 16, 64, 256)],
    "rope": [ROPE | {"num_tokens": tokens} for tokens in (1, 4, 16, 64, 256)],
    "sampling": [{"batch_size": rows} for rows in (1, 4, 16)],
}
Call = Callable[[], Any]


def read(root: Path, name: str) -> tuple[Definition, list[Solution]]:
    """The definition and all its solutions, incumbents first in their declared order."""
    definition = Definition.model_validate_json(next(root.glob(f"definitions/*/{name}.json")).read_bytes())
    solutions = [Solution.model_validate_json(path.read_bytes()) for path in sorted(root.glob(f"solutions/*/*/{name}/*.json"))]
    order = json.loads((root / "incumbents.json").read_text())[name]
    return definition, sorted(solutions, key=lambda one: (order.index(one.name) if one.name in order else len(order), one.name))


def bind(definition: Definition, solution: Solution, function: Callable[..., Any], inputs: dict[str, Any], axes: dict[str, int]) -> tuple[Call, Call]:
    """(call, restore): a call on private inputs, and what puts mutated inputs back."""
    mine = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}
    arguments = list(mine.values())
    if solution.spec.destination_passing_style:
        for name, spec in definition.outputs.items():
            if name not in definition.mutates.values():
                arguments.append(torch.empty(definition.shape_of(name, axes), dtype=torch_dtype(spec.dtype)))

    def restore() -> None:
        for name in definition.mutates:
            mine[name].copy_(inputs[name])

    return (lambda: function(*arguments)), restore


def time_us(call: Call, restore: Call, calls: int) -> float:
    """Median of some calls after one that does not count."""
    samples = []
    for _ in range(calls + 1):
        restore()
        start = time.perf_counter_ns()
        call()
        samples.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(samples[1:])


def supported(solution: Solution, axes: dict[str, int]) -> bool:
    """True if every declared constraint holds."""
    return all(eval(text, {"__builtins__": {}}, dict(axes)) for text in solution.spec.supports)


def measure(definition: Definition, built: list[tuple[Solution, Callable[..., Any]]], axes: dict[str, int], rounds: int, calls: int) -> dict[str, list[float]]:
    """Round medians by solution name, on fresh inputs each round."""
    workload = Workload(definition_digest=definition.digest, axes=axes, inputs=recipes_for(definition, axes, {}, {}))
    times: dict[str, list[float]] = {}
    for turn in range(rounds):
        inputs = build_inputs(definition, workload, "measure", turn, None)
        order = [(one, function) for one, function in built if supported(one, axes)]
        random.shuffle(order)
        for solution, function in order:
            call, restore = bind(definition, solution, function, inputs, axes)
            times.setdefault(solution.name, []).append(time_us(call, restore, calls))
    return times


def show(definition: Definition, solutions: list[Solution], columns: list[tuple[dict[str, int], dict[str, list[float]]]]) -> None:
    """One row per solution, one column per point: median us, and the median of per-round ratios (> 1 is faster)."""
    first = solutions[0].name
    print(f"\n{definition.name}: median us (ratio to {first.split('__')[1]})")
    print(f"{'':28}" + "".join(f"{','.join(str(axes[name]) for name in list(axes)[-1:]):>18}" for axes, _ in columns))
    for solution in solutions:
        cells = []
        for _, times in columns:
            if solution.name not in times or first not in times:
                cells.append(f"{'-':>18}")
                continue
            ratios = [base / mine for base, mine in zip(times[first], times[solution.name], strict=True)]
            cells.append(f"{statistics.median(times[solution.name]):>10.1f} ({statistics.median(ratios):4.2f})")
        print(f"{solution.author[:8]:>9} {solution.name.split('__')[1]:<18}" + "".join(f"{cell:>18}" for cell in cells))


def parse_point(text: str) -> dict[str, int]:
    """``M=4,N=2`` to a dict."""
    return {name: int(value) for name, value in (part.split("=") for part in text.split(","))}


def main() -> None:
    """Measure the named definitions."""
    parser = argparse.ArgumentParser(description="time starter solutions against each other on one core")
    parser.add_argument("definitions", nargs="+")
    parser.add_argument("--root", type=Path, default=HERE / "data")
    parser.add_argument("--points", nargs="+", type=parse_point)
    parser.add_argument("--only", default="", help="short names, comma-separated; default all of baseline plus C++")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=15)
    parser.add_argument("--core", type=int, default=1)
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    wanted = set(filter(None, options.only.split(",")))
    with tempfile.TemporaryDirectory() as cache:
        for name in options.definitions:
            definition, solutions = read(options.root, name)
            solutions = [one for one in solutions if (one.name.split("__")[1] in wanted if wanted else one.author in ("baseline", "lab-2"))]
            built = [(one, load(one, one.digest_for(definition.digest), Path(cache))) for one in solutions]
            points = options.points or POINTS[definition.op_type]
            columns = [(axes, measure(definition, built, axes, options.rounds, options.calls)) for axes in points]
            show(definition, solutions, columns)


if __name__ == "__main__":
    main()

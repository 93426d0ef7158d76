"""Measures what the doubled work costs, apart from the decision rule: the plain form against the slowed one.

On a CPU core (no ``--device``), apart from the harness too: calls of both forms in turns in this process. In: ``data/``. Out: a table
and ``build/bench/calibration.json``: per definition and size the plain form's time, and the gain by the fastest and by the
median of many interleaved calls. The time of a call on no rows at all is taken off first: what the language costs a call is no
part of the kernel. On a device, through the project's own worker (``visits.py``). In: ``data_cuda/``. Out: the same file. Not a judge;
run it on a machine that does nothing else.

    python infra/calibration/verify.py [--blocks 400]
    python infra/calibration/verify.py --device cuda:0 [--seconds 40]
"""

import argparse
import json
import math
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
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from fib_core.builders import load  # noqa: E402
from schemas.definition import Definition  # noqa: E402
from schemas.solution import Solution  # noqa: E402

SIZES = (100, 200, 400, 800, 1600, 3200)
BLOCK_US = 200.0
"""A block of calls is timed at once: long against the clock's own cost."""


def forms(name: str, folder: Path) -> tuple[Definition, dict[str, Callable[..., Any]]]:
    """The definition and its two entry points."""
    data = HERE / "data"
    definition = Definition.model_validate_json(next(data.glob(f"definitions/*/{name}.json")).read_bytes())
    found = {}
    for path in data.glob(f"solutions/*/*/{name}/*.json"):
        item = Solution.model_validate_json(path.read_bytes())
        found[item.name.rsplit("__", 1)[1]] = load(item, item.digest_for(definition.digest), folder)
    return definition, found


def arguments(definition: Definition, rows: int) -> list[torch.Tensor]:
    """Random inputs, then outputs to be written."""
    axes = {"M": rows}
    inputs = [torch.randn(definition.shape_of(name, axes)) for name in definition.inputs]
    return inputs + [torch.empty(definition.shape_of(name, axes)) for name in definition.outputs]


def block_us(function: Callable[..., Any], given: list[torch.Tensor], calls: int) -> float:
    """Microseconds a call."""
    start = time.perf_counter_ns()
    for _ in range(calls):
        function(*given)
    return (time.perf_counter_ns() - start) / 1e3 / calls


def compare(definition: Definition, found: dict[str, Callable[..., Any]], rows: int, blocks: int) -> dict[str, float]:
    """Interleaved blocks of both forms in random order; the call without rows first."""
    empty, given = arguments(definition, 0), arguments(definition, rows)
    overhead = min(block_us(found["candidate"], empty, 200) for _ in range(20))
    calls = max(1, round(BLOCK_US / block_us(found["candidate"], given, 20)))
    times: dict[str, list[float]] = {name: [] for name in found}
    order = list(found)
    for _ in range(blocks):
        random.shuffle(order)
        for name in order:
            times[name].append(block_us(found[name], given, calls) - overhead)
    pairs = [slow / plain for slow, plain in zip(times["incumbent"], times["candidate"], strict=True)]
    return {
        "plain_us": statistics.median(times["candidate"]), "overhead_us": overhead,
        "gain_by_min": min(times["incumbent"]) / min(times["candidate"]) - 1,
        "gain_by_median": statistics.median(pairs) - 1,
    }  # fmt: skip


def calls_in_turns(blocks: int) -> dict[str, Any]:
    """Both forms of every definition in this process, pinned to one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    report: dict[str, Any] = {"blocks": blocks, "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        for name in sorted(json.loads((HERE / "data" / "incumbents.json").read_text())):
            definition, found = forms(name, Path(folder))
            for rows in SIZES:
                line = compare(definition, found, rows, blocks)
                report["rows"].append({"definition": name, "M": rows, **line})
                print(f"{name:24s} M={rows:5d} {line['plain_us']:9.2f} us  gain by min {line['gain_by_min']:+.2%}, "
                      f"by median {line['gain_by_median']:+.2%}", file=sys.stderr, flush=True)
    return report


def visits_on(device: str, seconds: float, cache_dir: Path | None) -> dict[str, Any]:
    """Both forms through the device worker; on ``cpu`` the CPU's dataset, to see that this road works."""
    import visits

    data = HERE / ("data" if device == "cpu" else "data_cuda")
    with tempfile.TemporaryDirectory() as folder:
        built = cache_dir or Path(folder)
        report = visits.measure(data, device, seconds, built)
        if device != "cpu":
            report["terms_done_twice"] = visits.terms_done_twice(data, device, built)
    for row in report["rows"]:
        second = row["gain_by_second_clock"]
        print(f"{row['definition']:28s} M={row['M']:5d} {row['plain_us']:9.2f} us  gain {row['gain']:+.2%}"
              f" +- {row['standard_error'] or math.nan:.2%}, by the second clock {math.nan if second is None else second:+.2%}, "
              f"{row['visits']} visits", file=sys.stderr, flush=True)
    for fault in report["faults"]:
        print("FAULT", fault, file=sys.stderr, flush=True)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=400)
    parser.add_argument("--device", help="cuda:0: through the device worker (cpu: the same road over data/)")
    parser.add_argument("--seconds", type=float, default=40.0, help="time for visits, after the kernels are built")
    parser.add_argument("--cache", type=Path, help="where compiled kernels stay (default: nowhere)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "calibration.json")
    options = parser.parse_args()
    device = options.device
    found = visits_on(device, options.seconds, options.cache) if device else calls_in_turns(options.blocks)
    report = {"command": " ".join(sys.argv)} | found
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report))
    return 1 if report.get("faults") else 0


if __name__ == "__main__":
    sys.exit(main())

"""What `apply` costs on top of the function that it calls. Prints a table; writes ``build/bench/apply.json``.

Every case times a served function whose kernel does nothing against the same nothing called directly, in alternating
blocks of CPU time (one thread, no I/O: wall time without the neighbours). The overhead is the median difference. The
output allocation, which any destination-passing call pays, is on both sides. Negative control: a wrapper that adds
nothing must measure as nothing, one that adds a known delay as that delay; the yardstick shows how fast the machine is
at the moment. Run: ``python tests/benchmarks/bench_apply.py``.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

import fib_core.runtime as fib  # noqa: E402
from tests.runtime.published import FUSED, SCALE, build, index, modern, solution  # noqa: E402

CALLS_PER_BLOCK, BLOCKS = 1000, 21
DELAY_US = 10.0
PEER = {"hit_us": 12.5, "miss_us": 10.2}
NOTHING = "def run(x, gain, y):\n    pass\n"
NOTHING_FUSED = "def run(x, residual, gain, y):\n    pass\n"
GAIN = torch.ones(4)


def main() -> None:
    """Measure every case, print and store them."""
    torch.set_num_threads(1)
    boxes = [((1 << i) // 2 + 1, 1 << i) for i in range(1, 7)]
    parts = [
        (SCALE, [(box, solution(SCALE, NOTHING, dps=True)) for box in boxes]),
        (FUSED, [(box, solution(FUSED, NOTHING_FUSED, dps=True)) for box in boxes]),
    ]
    made, owned = modern(index(*parts))
    pulled = fib.PulledIndex(made.digest, made, {d.digest: d for d, _ in parts}, {k: s for k, (_, s) in owned.items()})
    fib.use(pulled, build)
    rows = {name: measure(served, plain, arguments) for name, (served, plain, arguments) in cases().items()}
    fib.reset()
    report = {
        "unit": "us", "calls_per_block": CALLS_PER_BLOCK, "blocks": BLOCKS, "cases": rows, "peer": PEER,
        "control_holds": abs(rows["control: adds nothing"]["overhead_us"]) < 0.5
        and abs(rows[f"control: adds {DELAY_US:g} us"]["overhead_us"] - DELAY_US) < 0.35 * DELAY_US,
    }  # fmt: skip
    out = ROOT / "build" / "bench" / "apply.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    for name, row in rows.items():
        print(f"{name:<44} {row['overhead_us']:8.2f} us   [{row['low_us']:.2f}, {row['high_us']:.2f}]")
    print(f"the peer's published figures: {PEER['hit_us']} us a hit, {PEER['miss_us']} us a miss")
    print(f"negative control {'holds' if report['control_holds'] else 'FAILS: the figures above mean nothing'}; {out}")


def cases() -> dict[str, tuple[Callable[..., Any], Callable[..., Any], list[tuple[Any, ...]]]]:
    """name -> (served, the same without apply, argument tuples to cycle through)."""

    def own(x: Any, gain: Any) -> Any:
        return x

    def own_fused(x: Any, residual: Any, gain: Any) -> Any:
        return x

    def allocating(x: Any, gain: Any) -> Any:
        torch.empty((4, 4), dtype=torch.float32, device=x.device)
        return x

    def allocating_fused(x: Any, residual: Any, gain: Any) -> Any:
        torch.empty((4, 4), dtype=torch.float32, device=x.device)
        return x

    served, fused, claimed = (
        fib.apply("scale_h4")(own),
        fib.apply("fused_add_scale_h4")(own_fused),
        lambda x, gain: fib.apply("scale_h4", (x, gain), {}, fallback=own),
    )
    inside, outside = [(torch.ones(4, 4), GAIN)], [(torch.ones(100, 4), GAIN)]
    many = [(torch.ones(n, 4), GAIN) for n in range(100, 8000)]
    return {
        "hit, decorator (2 inputs, DPS)": (served, allocating, inside),
        "hit, decorator, keywords": (lambda x, gain: served(x=x, gain=gain), allocating, inside),
        "hit, call form": (claimed, allocating, inside),
        "hit, in-place definition (3 inputs)": (fused, allocating_fused, [(torch.ones(4, 4), torch.ones(4, 4), GAIN)]),
        "miss, outside every box": (served, own, outside),
        "miss, a size never seen before": (served, own, many),
        "miss, other dtype": (served, own, [(torch.ones(4, 4).double(), GAIN)]),
        "miss, unknown definition": (fib.apply("no_such_definition")(own), own, inside),
        "yardstick: torch.empty((4, 4))": (allocating, own, inside),
        "control: adds nothing": (own, own, inside),
        f"control: adds {DELAY_US:g} us": (lambda x, gain: delayed(), own, inside),
    }


def delayed() -> None:
    """A wrapper with a known cost."""
    end = time.thread_time_ns() + DELAY_US * 1000
    while time.thread_time_ns() < end:
        pass


def measure(
    served: Callable[..., Any], plain: Callable[..., Any], arguments: list[tuple[Any, ...]]
) -> dict[str, float]:
    """Median, and the middle half, of the block-wise difference per call."""
    block = [arguments[i % len(arguments)] for i in range(CALLS_PER_BLOCK)]
    per_call(served, block[:200])
    differences = []
    for turn in range(BLOCKS):
        if len(arguments) > 1:
            start = turn * CALLS_PER_BLOCK
            block = [arguments[(start + i) % len(arguments)] for i in range(CALLS_PER_BLOCK)]
        pair = [per_call(function, block) for function in ((served, plain) if turn % 2 else (plain, served))]
        served_us, plain_us = pair if turn % 2 else pair[::-1]
        differences.append(served_us - plain_us)
    low, middle, high = statistics.quantiles(differences, n=4)
    return {"overhead_us": round(middle, 3), "low_us": round(low, 3), "high_us": round(high, 3)}


def per_call(function: Callable[..., Any], block: list[tuple[Any, ...]]) -> float:
    """Microseconds of CPU time per call over one block."""
    start = time.thread_time_ns()
    for arguments in block:
        function(*arguments)
    return (time.thread_time_ns() - start) / len(block) / 1000


if __name__ == "__main__":
    main()

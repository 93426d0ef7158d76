"""Our validation of a sampler beside the public evaluator's, on the same draws in the same run. Prints a table.

Writes ``build/bench/sampling_validation.json``. Both judge the same pre-drawn tokens (the sampler itself costs nothing
here): 100 trials of the mask, then 500,000 draws of a row, as many as the public evaluator asks for, in batches of
10,000 as it makes them. CPU time of one thread each, one after the other; ours five times, the median counts. The
ratio leaves out what the peer spends on repeating its input to that batch. Controls: an exact sampler (the peer's
verdict is shown, ours must accept), uniform over the support (ours must reject). The public package runs in an
environment of its own under ``build/``. Run: ``python tests/benchmarks/bench_sampling_validation.py``.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from fib_core.device.sampling import (  # noqa: E402
    MASK_SLACK,
    Rows,
    distribution_test,
    mask_finding,
    needed_draws,
    thresholds,
)
from fib_core.device.support import support  # noqa: E402
from tests.adapters.peer import PACKAGE, peer_python  # noqa: E402

VOCAB, DRAWS, BATCH, TRIALS, REPEATS = 128_256, 500_000, 10_000, 100, 5
TVD_THRESHOLD = 0.2  # of the peer's bundled configuration
CASES: dict[str, dict[str, Any]] = {"top_k": {"top_k": 50}, "top_p": {"top_p": 0.9}, "none": {}}
DTYPES = {"top_k": torch.int32, "top_p": torch.float32}
SAMPLERS = ("exact", "uniform")


def main() -> None:
    """Measure every case, print and store them."""
    torch.set_num_threads(1)
    python = peer_python(ROOT / "build")
    rows = {name: case(name, filters, python) for name, filters in CASES.items()}
    report = {
        "peer": PACKAGE, "vocab": VOCAB, "draws": DRAWS, "unit": "s of CPU time", "threads": 1, "cases": rows,
        "peer_over_ours": min(row["peer_over_ours"] for row in rows.values()),
        "exact_accepted": all(row["ours"]["exact"]["accepted"] for row in rows.values()),
        "biased_rejected": all(not row["ours"]["uniform"]["accepted"] for row in rows.values()),
        "peer_exact_accepted": {name: row["peer"]["exact"]["accepted"] for name, row in rows.items()},
        "peer_biased_rejected": {name: not row["peer"]["uniform"]["accepted"] for name, row in rows.items()},
    }  # fmt: skip
    out = ROOT / "build" / "bench" / "sampling_validation.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    show(rows)
    print(f"peer over ours, the worst case: {report['peer_over_ours']:.0f}; {out}")


def case(name: str, filters: dict[str, Any], python: Path) -> dict[str, Any]:
    """Verdicts and seconds of both on one filter."""
    generator = torch.Generator().manual_seed(1)
    probs = torch.softmax(torch.randn(1, VOCAB, generator=generator), dim=1)  # as the peer makes it
    held = {"probs": probs} | {key: torch.tensor([value], dtype=DTYPES[key]) for key, value in filters.items()}
    rows = Rows.of(held)
    for sampler in SAMPLERS:
        held |= drawn(rows, sampler, generator)
    judged_by_us(rows, held)
    peer = judged_by_peer(name, filters, held, python)
    ours = merged([judged_by_us(rows, held) for _ in range(REPEATS)])
    ratios = [(peer[s]["seconds"] - peer[s]["padding_s"]) / ours[s]["seconds"] for s in SAMPLERS if peer[s]["tvd"]]
    both = {"peer": peer, "ours": ours, "needed_draws": needed_draws(rows, 0)}
    return both | {"peer_over_ours": round(min(ratios), 1)}


def drawn(rows: Rows, sampler: str, generator: torch.Generator) -> dict[str, Any]:
    """Trials [100, 1] and batches [50, 10000] of one sampler."""
    found = support(rows, 0)
    weights = found.weights if sampler == "exact" else torch.ones_like(found.weights)
    picked = torch.multinomial(weights, TRIALS + DRAWS, replacement=True, generator=generator)
    tokens = found.ids[picked]
    return {f"{sampler}.trials": tokens[:TRIALS, None], f"{sampler}.batches": tokens[TRIALS:].reshape(-1, BATCH)}


def judged_by_us(rows: Rows, held: dict[str, Any]) -> dict[str, Any]:
    """The whole of our judgement, thresholds included, per sampler."""
    results = {}
    for sampler in SAMPLERS:
        trials, batches = held[f"{sampler}.trials"], held[f"{sampler}.batches"]
        start = time.process_time()
        limits = thresholds(rows, MASK_SLACK)
        found = mask_finding(rows, limits, trials) or mask_finding(rows, limits, batches.reshape(-1, 1))
        if found is None:
            found = distribution_test(rows, 0, batches, torch.Generator().manual_seed(5)).finding
        seconds = time.process_time() - start
        results[sampler] = {"accepted": found is None, "seconds": seconds, "why": found.reason if found else ""}
    return results


def judged_by_peer(name: str, filters: dict[str, Any], held: dict[str, Any], python: Path) -> dict[str, Any]:
    """The public evaluator, in its own process and environment."""
    inputs = {"probs": {"shape": ["batch_size", "vocab_size"], "dtype": "float32"}}
    inputs |= {key: {"shape": ["batch_size"], "dtype": str(DTYPES[key]).split(".")[1]} for key in filters}
    definition = {
        "name": f"{name}_sampling" if filters else "sampling", "op_type": "sampling",
        "axes": {"batch_size": {"type": "var"}, "vocab_size": {"type": "const", "value": VOCAB}}, "inputs": inputs,
        "outputs": {"samples": {"shape": ["batch_size"], "dtype": "int64"}}, "reference": "def run(*a):\n    ...\n",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        body = {"definition": definition, "samplers": SAMPLERS, "tvd_threshold": TVD_THRESHOLD}
        (home / "case.json").write_text(json.dumps(body))
        torch.save(held, home / "case.pt")
        program = Path(__file__).with_name("peer_sampling.py")
        done = subprocess.run([python, program, home], capture_output=True, text=True, timeout=300, check=False)
    if "RESULT" not in done.stdout:
        raise SystemExit(f"the public evaluator failed on {name}:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.split("RESULT")[1])
    return found


def merged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The first run's verdicts with median seconds."""
    return {n: row | {"seconds": statistics.median(run[n]["seconds"] for run in runs)} for n, row in runs[0].items()}


def show(rows: dict[str, dict[str, Any]]) -> None:
    """The table."""
    print(f"vocabulary {VOCAB:,}, {DRAWS:,} draws{'peer':>22}{'ours':>22}")
    for name, row in rows.items():
        for sampler in SAMPLERS:
            cells = [
                f"{row[side][sampler]['seconds']:9.3f} s {'accepts' if row[side][sampler]['accepted'] else 'rejects'}"
                for side in ("peer", "ours")
            ]
            print(f"{name:<8}{sampler:<24}{cells[0]:>22}{cells[1]:>22}")


if __name__ == "__main__":
    main()

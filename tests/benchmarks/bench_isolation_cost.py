"""What isolation costs: the same visit of ten workloads in a fresh process each time, and in a process that is kept.

CPU: ``{isolated_over_persistent}`` on small kernels. With ``--device cuda:0``: isolated evaluations per second with at
least 30 samples on both clocks. Writes build/bench/isolation_cost.json. Control: a kernel that is slow to import makes
isolation, and only isolation, dearer.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "device"), str(ROOT / "tests" / "device" / "gpu")]

from fib_core.adapters.device_worker import DeviceWorker  # noqa: E402

WORKLOADS = 10


def _request(device: str, source: str, mode: str, samples: int, contestants: int = 1):
    if device == "cpu":
        import kernels as tiny
    else:
        import kernels_cuda as tiny
    listed = [tiny.workload(tiny.ADD, N=1024 + 128 * i) for i in range(WORKLOADS)]
    entered = [tiny.solution(tiny.ADD, f"{source}# {mode} {i}\n") for i in range(contestants)]
    more = {"warmup_count": 2, "sample_count": samples, "input_sets": samples + 1, "mode": mode}
    return tiny.request(tiny.ADD, entered, listed, **more)


def _visit_s(worker: DeviceWorker, request) -> float:
    started = time.perf_counter()
    result = worker.visit(request)
    taken = time.perf_counter() - started
    assert result.fault is None, result.fault
    bad = [item for item in result.evaluations if item.status != "PASSED"]
    assert not bad, (bad[0].status, bad[0].rule, bad[0].reason, bad[0].log[-500:])
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--samples", type=int, default=None)
    parser.add_argument("--contestants", type=int, default=4)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "isolation_cost.json")
    given = parser.parse_args()
    samples = given.samples or (10 if given.device == "cpu" else 30)
    plain = "def run(a, b):\n    return a + b\n"
    slow = "import time\ntime.sleep(0.1)\n" + plain
    report = {"device": given.device, "workloads": WORKLOADS, "samples": samples, "repeats": given.repeats}
    with tempfile.TemporaryDirectory() as folder, DeviceWorker(Path(folder), given.device) as worker:
        worker.warm()
        report["environment"] = worker.describe().model_dump(mode="json")
        for name, source in (("plain", plain), ("slow_import", slow)):
            times = {mode: [] for mode in ("isolated", "persistent")}
            for mode in times:
                _visit_s(worker, _request(given.device, source, mode, samples))
            for _ in range(given.repeats):
                for mode, taken in times.items():
                    taken.append(_visit_s(worker, _request(given.device, source, mode, samples)))
            medians = {mode: statistics.median(taken) for mode, taken in times.items()}
            report[name] = {f"{mode}_s": value for mode, value in medians.items()}
            report[name]["isolated_over_persistent"] = medians["isolated"] / medians["persistent"]
            text = ", ".join(f"{mode} {value * 1e3:7.1f} ms" for mode, value in medians.items())
            print(f"{name:12s} {text}, ratio {report[name]['isolated_over_persistent']:.2f}", flush=True)
        taken = _visit_s(worker, _request(given.device, plain, "isolated", samples, given.contestants))
        report["isolated_evaluations_per_s"] = WORKLOADS * given.contestants / taken
        report["contestants"] = given.contestants
        print(f"{report['isolated_evaluations_per_s']:.1f} isolated evaluations per second, {samples} samples each")
    report["isolated_over_persistent"] = report["plain"]["isolated_over_persistent"]
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""The adversary corpus many times over. Prints a table; writes ``build/bench/flake.json``.

A file's outcome is its (status, rule) pairs by workload. ``misses``: a cheat's outcome that its row does not allow.
``false_rejections``: verdicts against an honest kernel. ``flakes``: files that were judged rightly in some runs and not
in others. Every run has its own secret seed. Run: ``python tests/benchmarks/bench_flake.py --runs 20``.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fib_core.adapters.device_worker import DeviceWorker  # noqa: E402
from tests.adversaries.arena import (  # noqa: E402
    CACHE_PREFIX,
    judge_honest,
    judge_row,
    prepare_all,
)
from tests.adversaries.catalogue import ROWS  # noqa: E402
from tests.adversaries.definitions import WORKLOADS  # noqa: E402
from tests.adversaries.honest_files import HONEST  # noqa: E402


def main() -> int:
    """Run, print, store; 1 if anything was judged wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="", help="part of a file name")
    arguments = parser.parse_args()
    started = time.monotonic()
    cheats: dict[str, Counter[str]] = {row.file: Counter() for row in ROWS if arguments.only in row.file}
    honest: dict[str, Counter[str]] = {file: Counter() for file in HONEST if arguments.only in file}
    with (
        tempfile.TemporaryDirectory(prefix=CACHE_PREFIX) as cache,
        DeviceWorker(cache_dir=Path(cache)) as worker,
    ):
        prepare_all(worker)
        for number in range(arguments.runs):
            one_run(worker, f"flake-{number}", cheats, honest)
            print(f"run {number + 1} of {arguments.runs}: {time.monotonic() - started:.0f} s", flush=True)
    report = summary(arguments.runs, cheats, honest) | {"wall_s": round(time.monotonic() - started, 1)}
    out = ROOT / "build" / "bench" / "flake.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    show(report, out)
    return 1 if report["misses"] or report["false_rejections"] or report["flakes"] else 0


def one_run(
    worker: DeviceWorker, seed: str, cheats: dict[str, Counter[str]], honest: dict[str, Counter[str]]
) -> None:
    """Every file once; counts "" for right, else what was wrong."""
    for row in ROWS:
        if row.file in cheats:
            cheats[row.file]["; ".join(judge_row(worker, row, seed))] += 1
    for file, seen in honest.items():
        seen["; ".join(judge_honest(worker, file, seed))] += 1


def summary(runs: int, cheats: dict[str, Counter[str]], honest: dict[str, Counter[str]]) -> dict[str, Any]:
    """The report: counts, and what was wrong where."""
    both = cheats | honest
    rows = {row.file: row for row in ROWS}
    verdicts = sum(runs * len(WORKLOADS[rows[file].definition]) * rows[file].copies for file in cheats)
    verdicts += sum(runs * len(WORKLOADS[HONEST[file]]) for file in honest)
    return {
        "runs": runs,
        "verdicts": verdicts,
        "flakes": sorted(file for file, seen in both.items() if 0 < seen[""] < runs),
        "misses": {file: runs - seen[""] for file, seen in cheats.items() if seen[""] < runs},
        "false_rejections": {file: runs - seen[""] for file, seen in honest.items() if seen[""] < runs},
        "details": {file: [text for text in seen if text][:5] for file, seen in both.items() if seen[""] < runs},
    }


def show(report: dict[str, Any], out: Path) -> None:
    """The table for people."""
    print(f"{report['verdicts']} verdicts in {report['runs']} runs, {report['wall_s']} s")
    for kind in ("misses", "false_rejections"):
        for file, count in report[kind].items():
            print(f"{kind:<17} {file:<36} {count:4d} of {report['runs']}   {report['details'][file][0][:160]}")
    print(f"flakes: {', '.join(report['flakes']) or 'none'}; {out}")


if __name__ == "__main__":
    raise SystemExit(main())

"""The detection table: every file of the adversary corpus, judged by us, by the peer, and by a static checker's rules.

``--device cpu`` (the default): the CPU corpus by us, and the peer's sampling evaluator on the host. ``--device cuda:0``:
the files made for CUDA and those of the CPU corpus that run there, by us and by the peer's own benchmark, in one run.
``--merge`` joins what both wrote to ``infra/evidence/detection.json`` and its table. Honest kernels are the control: a
judge that rejects everything catches every cheat.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import torch  # noqa: E402
from detection_table import markdown, totals  # noqa: E402
from peer_runs import peer_verdicts  # noqa: E402
from static_reading import reading  # noqa: E402

from fib_core.adapters.device_worker import DeviceWorker  # noqa: E402
from tests.adversaries.arena import CACHE_PREFIX, prepare_all  # noqa: E402
from tests.adversaries.cuda.judging import Judged, judge, outcome_of_pass  # noqa: E402
from tests.adversaries.cuda.subjects import Subject, cpu_subjects, subjects  # noqa: E402

EVIDENCE = ROOT / "infra" / "evidence"
PEER = "flashinfer-bench 0.1.2"
UNJUDGED = {
    "NOT_APPLICABLE": "not applicable", "NOT_RUN": "not run", "BENCHMARK_ENDED": "benchmark ended",
    "NO_TRACE": "benchmark ended",
}  # fmt: skip


def main() -> None:
    """Judge, or merge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="files whose names hold this")
    parser.add_argument("--origin", default="", help="cuda or ported only")
    parser.add_argument("--peer", default="", help="interpreter with the peer; default: an environment under build/")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--merge", nargs="+", type=Path)
    given = parser.parse_args()
    if given.merge:
        merge(given.merge)
        return
    out = given.out or ROOT / "build" / "bench" / "detection.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    every = cpu_subjects() if given.device == "cpu" else subjects()
    chosen = [one for one in every if given.only in one.file and given.origin in one.origin]
    report = {"environment": {}, "command": " ".join(sys.argv), "rows": []}

    def save() -> None:
        out.write_text(json.dumps(report, indent=1) + "\n")

    judge_all(given, chosen, report, save)
    save()
    print(json.dumps(totals(report["rows"])))


def judge_all(given: argparse.Namespace, chosen: list[Subject], report: dict[str, Any], save: Any) -> None:
    """Ours first, then the peer's on the same machine; what is known is written after every verdict."""
    rows: dict[str, dict[str, Any]] = {}
    started = time.monotonic()

    def ours(judged: Judged) -> None:
        row = rows[judged.subject.file] = row_of(judged)
        report["rows"].append(row)
        rules = [f"{one['status']}({one['rule']})" for one in row["ours"]["verdicts"]]
        print(f"{time.monotonic() - started:6.1f} {judged.outcome:11s} {row['file']:40s} {rules} {row['ours']['reason'][:90]}",
              flush=True)
        save()

    with tempfile.TemporaryDirectory(prefix=CACHE_PREFIX) as cache, DeviceWorker(Path(cache), given.device) as worker:
        worker.warm() if given.device != "cpu" else prepare_all(worker)
        report["environment"] = environment(worker)
        judge(worker, chosen, "detection", ours)
    report["ours_s"] = round(time.monotonic() - started, 1)

    def theirs(file: str, found: dict[str, Any]) -> None:
        rows[file]["peer"] = found | {"outcome": peer_outcome(by_file[file], found)}
        print(f"{time.monotonic() - started:6.1f} peer {rows[file]['peer']['outcome']:11s} {file:40s} {found['status']} "
              f"{found.get('latency_ms')}", flush=True)
        save()

    if not given.no_peer:
        by_file = {one.file: one for one in chosen if given.device != "cpu" or one.entry.definition == "top_k_sampling"}
        for file, found in peer_verdicts(given.peer or str(peer_python()), list(by_file.values()), theirs).items():
            rows[file].setdefault("peer", found | {"outcome": peer_outcome(by_file[file], found)})
    report["wall_s"] = round(time.monotonic() - started, 1)


def row_of(judged: Judged) -> dict[str, Any]:
    """One subject in the report."""
    subject, row = judged.subject, judged.subject.row
    verdicts = [
        {"status": one.status.value, "rule": one.rule, "samples_us": [round(us, 2) for us in one.samples_us]}
        for one in judged.evaluations
    ]
    failed = [one.reason for one in judged.evaluations if one.status != "PASSED"]
    python = subject.entry.language != "cpp"
    return {
        "id": row.id if row else "honest", "file": subject.file, "origin": subject.origin, "title": subject.title,
        "claim": row.claim if row else "passes", "definition": subject.entry.definition,
        "true_us": row.true_us if row else None, "outcome": judged.outcome,
        "ours": {"verdicts": verdicts, "reason": judged.fault or (failed[0] if failed else "")},
        "static": reading(subject.entry.source) if python else None,
    }  # fmt: skip


def peer_outcome(subject: Subject, found: dict[str, Any]) -> str:
    """The same words for the peer: a pass at the true time is no harm done."""
    status = found["status"]
    if status in UNJUDGED:
        return UNJUDGED[status]
    if subject.row is None:
        return "passed" if status == "PASSED" else "rejected"
    if status != "PASSED":
        return "caught"
    latency_us = 1000 * found.get("latency_ms", 0.0)
    return outcome_of_pass(subject.row, [[latency_us]])


def environment(worker: DeviceWorker) -> dict[str, Any]:
    """Where this was judged."""
    described = worker.describe().model_dump(mode="json")
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return described | {"python": platform.python_version(), "torch": torch.__version__, "peer": PEER,
                        "revision": revision.stdout.strip() or "unknown"}  # fmt: skip


def peer_python() -> Path:
    """An environment of the peer's own."""
    from tests.adapters.peer import peer_python as made

    return made(ROOT / "build")


def merge(paths: list[Path]) -> None:
    """One evidence file of all reports; the host's verdict of the peer stands in where the device gave none."""
    reports = [json.loads(path.read_text()) for path in paths]
    rows = [row for report in reports for row in report["rows"]]
    on_host = {row["file"]: row["peer"] | {"where": "host"} for row in rows if row["origin"] == "cpu" and "peer" in row}
    for row in rows:
        if row["origin"] != "cpu" and row["file"] in on_host and row.get("peer", {}).get("status") in (None, "NOT_RUN"):
            row["peer"] = on_host[row["file"]]
    runs = [{key: value for key, value in report.items() if key != "rows"} for report in reports]
    body = {"peer": PEER, "runs": runs, "totals": totals(rows), "rows": rows}
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    (EVIDENCE / "detection.json").write_text(json.dumps(body, indent=1) + "\n")
    (EVIDENCE / "detection.md").write_text(markdown(body))
    print(json.dumps(body["totals"], indent=1))


if __name__ == "__main__":
    main()

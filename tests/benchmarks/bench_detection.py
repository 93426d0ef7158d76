"""The detection table: every file of the adversary corpus, judged by us, by the peer, and by a static checker's rules.

``--device cpu`` (the default): the CPU corpus by us, and the peer's comparison where no clock is needed. With
``--device cuda:0`` the files made for CUDA and those of the CPU corpus that run there, by us and by the peer's own
benchmark. ``--resume`` keeps what an earlier report has for that device, but for what ``--again`` matches. ``--merge``
joins reports of both into ``infra/evidence/detection.json`` and its page; that file itself may be one of them, and a
later report of a device replaces an earlier one. Honest kernels are the control: a judge that rejects everything
catches every cheat.
"""

import argparse
import hashlib
import json
import platform
import re
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import torch  # noqa: E402
from detection_table import in_order, markdown, totals  # noqa: E402
from peer_runs import peer_verdicts  # noqa: E402
from static_reading import reading  # noqa: E402

from fib_core.adapters.device_worker import DeviceWorker  # noqa: E402
from tests.adapters.peer import PACKAGE, PeerUnavailable, peer_python  # noqa: E402
from tests.adversaries.arena import CACHE_PREFIX, prepare_all  # noqa: E402
from tests.adversaries.cuda.judging import Judged, judge, outcome_of_pass  # noqa: E402
from tests.adversaries.cuda.subjects import Subject, cpu_subjects, subjects  # noqa: E402

EVIDENCE = ROOT / "infra" / "evidence"
UNJUDGED = {
    "NOT_APPLICABLE": "not applicable", "NOT_RUN": "not run", "BENCHMARK_ENDED": "benchmark ended",
    "NO_TRACE": "benchmark ended",
}  # fmt: skip
CLOCKLESS = ("V", "honest", "C37", "C39", "C40")  # rows that are about values: the peer's comparison says it all
Body = dict[str, Any]


@dataclass
class Report:
    """What is known so far; on disk after every verdict."""

    out: Path
    rows: dict[str, Body]
    peers: dict[str, Body] = field(default_factory=dict)  # of files that we judge again, unchanged
    facts: Body = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def ours(self, judged: Judged) -> None:
        """A verdict of ours."""
        row = row_of(judged)
        known = self.peers.get(row["file"])
        self.rows[row["file"]] = row | ({"peer": known} if known else {})
        seen = [f"{one['status']}({one['rule']})" for one in row["ours"]["verdicts"]]
        self._say("ours", judged.outcome, row["file"], f"{seen} {row['ours']['reason'][:90]}")

    def peer(self, subject: Subject, found: Body) -> None:
        """A verdict of the peer's."""
        outcome = peer_outcome(subject, found)
        self.rows[subject.file]["peer"] = found | {"outcome": outcome}
        self._say("peer", outcome, subject.file, f"{found['status']} {found.get('latency_ms')}")

    def save(self) -> None:
        """Write it."""
        self.facts["wall_s"] = round(time.monotonic() - self.started, 1)
        self.out.write_text(json.dumps(self.facts | {"rows": list(self.rows.values())}, indent=1) + "\n")

    def _say(self, judge_name: str, outcome: str, file: str, words: str) -> None:
        print(f"{time.monotonic() - self.started:6.1f} {judge_name} {outcome:15s} {file:40s} {words}", flush=True)
        self.save()


def main() -> None:
    """Judge, or merge."""
    given = _arguments()
    if given.merge:
        merge(given.merge)
        return
    given.out.parent.mkdir(parents=True, exist_ok=True)
    every = cpu_subjects() if given.device == "cpu" else subjects()
    every = [one for one in every if re.search(given.only, one.file)]
    report = _resumed(given, every)
    judge_all(given, every, report)
    report.save()
    print(json.dumps(totals(list(report.rows.values()))))


def _resumed(given: argparse.Namespace, every: list[Subject]) -> Report:
    """What an earlier report has on the same text: our verdicts but for those asked for again, all of the peer's."""
    sources = {one.file: _digest(one) for one in every}
    kept = json.loads(given.resume.read_text())["rows"] if given.resume else []
    same = [row for row in kept if (row["origin"] == "cpu") is (given.device == "cpu") and row["file"] in sources]
    same = [row for row in same if row["source"] == sources[row["file"]]]
    rows = {row["file"]: row for row in same if not (given.again and re.search(given.again, row["file"]))}
    report = Report(given.out, rows, {row["file"]: row["peer"] for row in same if "peer" in row})
    if rows:
        report.facts["note"] = f"{len(rows)} verdicts of ours and {len(report.peers)} of the peer's from earlier runs"
    return report


def _digest(subject: Subject) -> str:
    return hashlib.sha256(subject.entry.source.encode()).hexdigest()[:16]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "detection.json")
    parser.add_argument("--only", default="", help="files whose names match this pattern")
    parser.add_argument("--resume", type=Path, help="a report of the same device; what it has is not judged again")
    parser.add_argument("--again", default="", help="with --resume: files to judge again all the same")
    parser.add_argument("--peer", default="", help="interpreter with the peer; default: an environment under build/")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--merge", nargs="+", type=Path)
    return parser.parse_args()


def judge_all(given: argparse.Namespace, every: list[Subject], report: Report) -> None:
    """Ours first, then the peer's on the same machine."""
    fresh = [one for one in every if one.file not in report.rows]
    report.facts |= {"command": " ".join(["python", "tests/benchmarks/bench_detection.py", *sys.argv[1:]])}
    with tempfile.TemporaryDirectory(prefix=CACHE_PREFIX) as cache, DeviceWorker(Path(cache), given.device) as worker:
        report.facts["environment"] = environment(worker)
        if fresh:
            worker.warm() if given.device != "cpu" else prepare_all(worker)
            judge(worker, fresh, "detection", report.ours)
    if given.no_peer:
        return
    asked = [one for one in every if not _settled(report.rows[one.file].get("peer")) and _for_peer(one)]
    by_file = {one.file: one for one in asked}
    try:
        python = given.peer or str(peer_python(ROOT / "build"))
    except PeerUnavailable as reason:
        print(f"without the peer: {reason}")
        return
    peer_verdicts(python, asked, lambda file, found: report.peer(by_file[file], found))


def _settled(peer: Body | None) -> bool:
    """Did the peer judge it here? What a merge took over from the host does not count."""
    return peer is not None and peer["status"] != "NOT_RUN" and peer.get("where") != "host"


def _for_peer(subject: Subject) -> bool:
    """On the host only what is about values; nowhere what needs a compiler."""
    if subject.entry.language in ("cpp", "cuda"):
        return False
    if subject.origin != "cpu":
        return True
    name = subject.row.id if subject.row else "honest"
    return subject.file.endswith(".py") and "triton" not in subject.file and name.startswith(CLOCKLESS)


def row_of(judged: Judged) -> Body:
    """One subject in the report."""
    subject, row = judged.subject, judged.subject.row
    verdicts = [
        {"status": one.status.value, "rule": one.rule, "samples_us": _rounded(one.samples_us),
         "second_clock_us": _rounded(one.second_clock_us), "log": one.log[-300:] if one.rule else ""}
        for one in judged.evaluations
    ]  # fmt: skip
    failed = [one.reason for one in judged.evaluations if one.status != "PASSED"]
    return {
        "id": row.id if row else "honest", "file": subject.file, "source": _digest(subject),
        "origin": subject.origin, "title": subject.title,
        "claim": row.claim if row else "passes", "definition": subject.entry.definition,
        "true_us": row.true_us if row else None, "outcome": judged.outcome,
        "ours": {"verdicts": verdicts, "reason": judged.fault or (failed[0] if failed else "")},
        "static": reading(subject.entry.source) if subject.entry.language in ("python", "triton") else None,
    }  # fmt: skip


def _rounded(times_us: tuple[float, ...]) -> list[float]:
    return [round(us, 2) for us in times_us]


def peer_outcome(subject: Subject, found: Body) -> str:
    """The same words for the peer: a pass at the true time is no harm done."""
    status = found["status"]
    if status in UNJUDGED:
        return UNJUDGED[status]
    if subject.row is None:
        return "passed" if status == "PASSED" else "rejected"
    if status != "PASSED":
        return "caught"
    return outcome_of_pass(subject.row, [[1000 * found.get("latency_ms", 0.0)]])


def environment(worker: DeviceWorker) -> Body:
    """Where this was judged, and by which judge: a digest of its files."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "fib_core" / "device").rglob("*.*")):
        if path.suffix in (".py", ".cpp", ".h"):
            digest.update(path.name.encode() + path.read_bytes())
    more = {"python": platform.python_version(), "torch": torch.__version__, "peer": PACKAGE}
    return worker.describe().model_dump(mode="json") | more | {"judge": f"sha256:{digest.hexdigest()[:16]}"}


def _on_host(report: Body) -> bool:
    return not report["environment"]["device_class"].startswith("sm_")


def _reports_of(body: Body) -> list[Body]:
    """One report per device: the evidence as it stands holds two."""
    if "runs" not in body:
        return [body]
    return [
        run | {"rows": [row for row in body["rows"] if (row["origin"] == "cpu") == _on_host(run)]}
        for run in body["runs"]
    ]


def merge(paths: list[Path]) -> None:
    """One evidence file of all reports; the host's verdict of the peer stands in where the device gave none."""
    latest = {_on_host(report): report for path in paths for report in _reports_of(json.loads(path.read_text()))}
    reports = [latest[side] for side in sorted(latest)]
    rows = in_order([row for report in reports for row in report["rows"]])
    on_host = {row["file"]: row["peer"] | {"where": "host"} for row in rows if row["origin"] == "cpu" and "peer" in row}
    for row in rows:
        if row["origin"] != "cpu" and row["file"] in on_host and not _settled(row.get("peer")):
            row["peer"] = on_host[row["file"]]
    for row in rows:  # logs name places of one machine
        for told in [*row["ours"]["verdicts"], row.get("peer", {})]:
            told.pop("log", None)
    judged = {row["file"] for row in rows if row["origin"] != "cpu"}
    runs = [{key: value for key, value in report.items() if key != "rows"} for report in reports]
    body = {"peer": PACKAGE, "runs": runs, "totals": totals(rows), "rows": rows}
    body["not_judged_on_device"] = sorted(one.file for one in subjects() if one.file not in judged)
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    (EVIDENCE / "detection.json").write_text(json.dumps(body, indent=1) + "\n")
    (EVIDENCE / "detection.md").write_text(markdown(body))
    print(json.dumps(body["totals"], indent=1))


if __name__ == "__main__":
    main()

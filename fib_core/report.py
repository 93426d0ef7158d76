"""Room 8, report: everything above in; the run's summary, table rows, metrics and a page out.

Summaries are computed from samples and decisions, never stored instead of them. Every count adds up to what was read.
Knows no tracker, no terminal and no artifact store.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fib_core.speed import fast_p, weighted_speedups
from schemas.base import Digest
from schemas.decision import Decision
from schemas.evaluation import Evaluation, Status
from schemas.snapshot import Snapshot
from schemas.solution import Solution

LOG_EXCERPT_CHARS = 600
Row = dict[str, Any]


@dataclass(frozen=True)
class RunFacts:
    """All that a finished run knows; the report reads it and adds nothing."""

    snapshot: Snapshot
    solutions: Mapping[Digest, Solution]
    screen: Sequence[Evaluation]
    decisions: Sequence[Decision]
    profile: str
    channel: str
    index_digest: Digest
    not_applicable: Collection[tuple[Digest, Digest]] = ()
    quarantined_count: int = 0
    read_count: int = 0
    flow_run_id: str | None = None
    mlflow_run_id: str | None = None
    wall_s: float = 0.0
    notes: Mapping[Digest, str] = field(default_factory=dict)
    coverage: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def summary(facts: RunFacts) -> Row:
    """The shape of ``fib run --json``. promoted + kept_incumbent is the number of keys."""
    promoted = [item for item in facts.decisions if item.verdict == "promoted"]
    return {
        "snapshot_digest": facts.snapshot.digest,
        "index_digest": facts.index_digest,
        "channel": facts.channel,
        "profile": facts.profile,
        "op_types": sorted({item.op_type for item in facts.snapshot.definitions}),
        "evaluations": status_counts(facts.screen),
        "promoted": [_promotion(item, facts.solutions) for item in promoted],
        "kept_incumbent": len(facts.decisions) - len(promoted),
        "flow_run_id": facts.flow_run_id,
        "mlflow_run_id": facts.mlflow_run_id,
        "wall_s": round(facts.wall_s, 3),
    }


def status_counts(evaluations: Iterable[Evaluation]) -> dict[str, int]:
    """Status -> number of (solution, workload) pairs; the last evaluation of a pair counts."""
    last = {(item.job.solution_digest, item.job.workload_digest): item.status for item in evaluations}
    counts = Counter(status.value for status in last.values())
    return {status.value: counts[status.value] for status in Status if counts[status.value]}


def decision_rows(decisions: Iterable[Decision], solutions: Mapping[Digest, Solution]) -> list[Row]:
    """One row per key: promoted ones first, then by definition and key."""
    ordered = sorted(decisions, key=lambda item: (item.verdict != "promoted", item.definition, item.key))
    return [
        {
            "definition": item.definition,
            "key": item.key,
            "verdict": item.verdict,
            "solution": _name(item.solution_digest, solutions) if item.solution_digest else "incumbent",
            **_figures(item),
            "rounds": item.rounds,
            "finalists": len(item.finalists),
            "failed": ", ".join(item.failed),
            "reason": item.reason,
        }
        for item in ordered
    ]


def failure_rows(
    evaluations: Iterable[Evaluation], snapshot: Snapshot, solutions: Mapping[Digest, Solution]
) -> list[Row]:
    """One row per (solution, status, rule): how many workloads, the first reason and the end of its log."""
    groups: dict[tuple[str, str, str], list[Evaluation]] = {}
    for item in evaluations:
        if item.status is not Status.PASSED:
            groups.setdefault((item.job.solution_digest, item.status.value, item.rule or ""), []).append(item)
    names = {item.digest: item.name for item in snapshot.definitions}
    rows = [
        {
            "definition": names.get(items[0].job.definition_digest, items[0].job.definition_digest),
            "solution": _name(digest, solutions),
            "status": status,
            "rule": rule,
            "workloads": len({item.job.workload_digest for item in items}),
            "reason": items[0].reason,
            "log": items[0].log[-LOG_EXCERPT_CHARS:],
        }
        for (digest, status, rule), items in groups.items()
    ]
    return sorted(rows, key=lambda row: (row["status"], row["definition"], row["solution"]))


def toothless_rows(evaluations: Iterable[Evaluation], snapshot: Snapshot) -> list[Row]:
    """One row for every examined workload that a mutated output survives."""
    names = {item.digest: item.name for item in snapshot.definitions}
    axes = {item.workload.digest: item.workload.axes for item in snapshot.workloads}
    found = {(item.job.definition_digest, item.job.workload_digest): item.survivors for item in evaluations}
    return [
        {"definition": names[one], "axes": str(axes[other]), "mutations that pass": ", ".join(survivors)}
        for (one, other), survivors in found.items()
        if survivors
    ]


def metrics(facts: RunFacts) -> dict[str, float]:
    """Flat numbers for a tracker: counts, shares, fast_p, weighted speed-up."""
    counts = status_counts(facts.screen)
    total = sum(counts.values())
    numbers = {f"evaluations.{status}": float(count) for status, count in counts.items()}
    numbers["evaluations.not_applicable"] = float(len(facts.not_applicable))
    numbers["invalid_share"] = counts.get("INVALID", 0) / total if total else 0.0
    numbers["quarantined_share"] = facts.quarantined_count / facts.read_count if facts.read_count else 0.0
    verdicts = Counter(item.verdict for item in facts.decisions)
    numbers |= {f"keys.{verdict}": float(count) for verdict, count in verdicts.items()}
    numbers |= {
        f"fast_p.{threshold:g}": share
        for threshold, share in fast_p(facts.screen, facts.decisions, facts.solutions, facts.not_applicable).items()
    }
    numbers |= {f"coverage.{name}": inside for name, (inside, _) in facts.coverage.items()}
    speedups = weighted_speedups(facts.snapshot, facts.decisions)
    numbers |= {f"weighted_speedup.{name}": ratio for name, ratio in speedups.items()}
    return numbers


def page(facts: RunFacts) -> str:
    """The run as Markdown: what was decided, what failed and why, and how much was left out."""
    numbers = metrics(facts)
    decisions, failures = decision_rows(facts.decisions, facts.solutions), failure_rows(
        facts.screen, facts.snapshot, facts.solutions
    )  # fmt: skip
    promoted = sum(row["verdict"] == "promoted" for row in decisions)
    counts = ", ".join(f"{count} {status}" for status, count in status_counts(facts.screen).items())
    parts = [
        f"# Run on snapshot `{facts.snapshot.digest[7:19]}`",
        f"Profile **{facts.profile}**, channel **{facts.channel}**, index `{facts.index_digest[7:19]}`.",
        f"{promoted} of {len(decisions)} keys promoted, {len(decisions) - promoted} kept the incumbent. "
        f"Screen: {counts or 'nothing'}; {len(facts.not_applicable)} pairs not applicable; "
        f"INVALID {numbers['invalid_share']:.1%}; quarantined {facts.quarantined_count} of {facts.read_count} lines.",
        "## Decisions", table(decisions, ("definition", "key", "solution", "ratio", "interval", "rounds", "reason")),
        "## Failures", table(failures, ("definition", "solution", "status", "rule", "workloads", "reason")),
        "## Toothless workloads", "Their rules would let a plainly wrong output pass; they support no promotion.",
        table(toothless_rows(facts.screen, facts.snapshot), ("definition", "axes", "mutations that pass")),
        "## Weighted speed-up",
        table(_speed_rows(facts), ("definition", "speed-up", "calls measured", "calls changed")),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """A Markdown table; a dash where there is nothing to show."""
    if not rows:
        return "None."
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(head + ["| " + " | ".join(_cell(row.get(name)) for name in columns) + " |" for row in rows])


def _speed_rows(facts: RunFacts) -> list[Row]:
    """Weighted speed-up per definition, with the shares of logged calls that lie in a box and that change kernel."""
    rows: list[Row] = []
    for name, ratio in weighted_speedups(facts.snapshot, facts.decisions).items():
        inside, served = facts.coverage.get(name, (None, None))
        shares = {"calls measured": _percent(inside), "calls changed": _percent(served)}
        rows.append({"definition": name, "speed-up": f"{ratio:.3f}x", **shares})
    return rows


def _percent(share: float | None) -> str | None:
    return None if share is None else f"{share:.0%}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        value = f"{value:.3f}"
    if isinstance(value, list | tuple):
        value = "-".join(f"{part:.2f}" for part in value)
    text = str(value if value not in (None, "") else "-")
    return text.replace("|", "\\|").replace("\n", " ")


def _figures(decision: Decision) -> Row:
    """The published estimate, or the best candidate's where none was promoted."""
    shown = [item for item in decision.estimates if decision.solution_digest in (None, item.solution_digest)]
    best = max(shown, key=lambda item: item.ratio, default=None)
    return {"ratio": best.ratio if best else None, "interval": list(best.interval) if best else None}


def _promotion(decision: Decision, solutions: Mapping[Digest, Solution]) -> Row:
    name = _name(decision.solution_digest, solutions)
    return {"definition": decision.definition, "key": decision.key, "solution": name, **_figures(decision)}


def _name(digest: Digest | None, solutions: Mapping[Digest, Solution]) -> str:
    found = solutions.get(digest or "")
    return found.name if found else str(digest)

"""Rows of the report: decisions, failures, toothless workloads, shares of what was left out.

In: records of a run. Out: plain dicts for tables, artifacts and the tracker. Every count adds up to what was read.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from schemas.base import Digest
from schemas.decision import Condition, Decision, Verdict
from schemas.evaluation import Evaluation, Status
from schemas.snapshot import Snapshot
from schemas.solution import Solution

LOG_EXCERPT_CHARS = 600
CONDITIONS: tuple[Condition, ...] = ("significance", "min_effect", "gates_passed", "gates_speed")
VERDICTS: tuple[Verdict, ...] = ("promoted", "kept_incumbent", "not_enough_rounds", "invalid")
Row = dict[str, Any]


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
            "conditions": conditions(item),
            "failed": ", ".join(item.failed),
            "causes": ", ".join(item.causes),
            "reason": item.reason,
        }
        for item in ordered
    ]


def conditions(decision: Decision) -> str:
    """The four conditions of a promotion as ``++-+``, in the order of :data:`CONDITIONS`; empty if nobody was judged.

    Of a key that stays with the incumbent: those of its best finalist.
    """
    if not decision.estimates or decision.verdict in ("invalid", "not_enough_rounds"):
        return ""
    return "".join("-" if name in decision.failed else "+" for name in CONDITIONS)


def promotion(decision: Decision, solutions: Mapping[Digest, Solution]) -> Row:
    """A promotion as ``fib run --json`` names it."""
    name = _name(decision.solution_digest, solutions)
    return {"definition": decision.definition, "key": decision.key, "solution": name, **_figures(decision)}


def _figures(decision: Decision) -> Row:
    """The published estimate, or the best candidate's where none was promoted."""
    shown = [item for item in decision.estimates if decision.solution_digest in (None, item.solution_digest)]
    best = max(shown, key=lambda item: item.ratio, default=None)
    return {"ratio": best.ratio if best else None, "interval": list(best.interval) if best else None}


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


def _name(digest: Digest | None, solutions: Mapping[Digest, Solution]) -> str:
    found = solutions.get(digest or "")
    return found.name if found else str(digest)


def account_rows(groups: Mapping[str, Mapping[str, int]]) -> list[Row]:
    """What -> counts by kind, as rows with shares; each group ends with its sum, so that nothing is lost unseen."""
    rows: list[Row] = []
    for of, counts in groups.items():
        total = sum(counts.values())
        rows += [
            {"of": of, "what": what, "count": count, "share": count / total if total else 0.0}
            for what, count in counts.items()
        ]
        rows.append({"of": of, "what": "sum", "count": total, "share": 1.0 if total else 0.0})
    return rows


def verdict_counts(decisions: Iterable[Decision]) -> dict[str, int]:
    """Verdict -> keys, verdicts without a key included."""
    counts = Counter(item.verdict for item in decisions)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def failed_counts(decisions: Iterable[Decision]) -> dict[str, int]:
    """Condition -> judged keys that stayed with the incumbent since it failed; a key may count under several."""
    counts = Counter(name for item in decisions if item.verdict == "kept_incumbent" for name in item.failed)
    return {name: counts[name] for name in CONDITIONS}

"""Room 8, report: everything above in; the run's summary, table rows, metrics and a page out.

Summaries are computed from samples and decisions, never stored instead of them. Every count adds up to what was read.
Knows no tracker, no terminal and no artifact store.
"""

from collections.abc import Sequence

from fib_core.account.controls import controls_of, discoveries_of
from fib_core.account.report_closing import closing_lines
from fib_core.account.report_facts import RunFacts
from fib_core.account.report_page import (
    cold_section,
    control_section,
    coverage_section,
    roofline_section,
    scores_section,
    table,
    together,
)
from fib_core.account.report_rows import (
    Row,
    account_rows,
    decision_rows,
    failed_counts,
    failure_rows,
    promotion,
    status_counts,
    toothless_rows,
    verdict_counts,
)
from fib_core.account.scoring import EVERY, Score

__all__ = [
    "RunFacts", "closing_lines", "decision_rows", "extras", "failure_rows", "metrics", "page", "status_counts",
    "summary", "table", "toothless_rows",
]  # fmt: skip


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
        "promoted": [promotion(item, facts.solutions) for item in promoted],
        "kept_incumbent": len(facts.decisions) - len(promoted),
        "flow_run_id": facts.flow_run_id,
        "mlflow_run_id": facts.mlflow_run_id,
        "wall_s": round(facts.wall_s, 3),
    }


def extras(facts: RunFacts) -> Row:
    """What ``fib run --json`` says beyond :func:`summary`, under names of its own.

    fast_p and areas of all definitions together; of each one, and rooflines, the tracker has tables.
    """
    card = facts.card
    shown = (*together(card.confirmed), *card.traffic, *together(card.screen))
    return {
        "not_published": facts.not_published,
        "scores": [item.row for item in shown],
        "cold": facts.cold,
        "coverage": [item._asdict() for item in facts.coverage],
        "accounts": facts.accounts,
    }


def metrics(facts: RunFacts) -> dict[str, float]:
    """Flat numbers for a tracker: counts, shares and scores, each under the name of its side."""
    counts = status_counts(facts.screen)
    total = sum(counts.values())
    numbers = {f"evaluations.{status}": float(count) for status, count in counts.items()}
    numbers["evaluations.not_applicable"] = float(len(facts.not_applicable))
    numbers["invalid_share"] = counts.get("INVALID", 0) / total if total else 0.0
    numbers["quarantined_share"] = facts.quarantined_count / facts.read_count if facts.read_count else 0.0
    numbers |= {f"keys.{verdict}": float(count) for verdict, count in verdict_counts(facts.decisions).items()}
    for item in facts.coverage:
        shares = {"inside": item.inside_share, "served": item.served_share, "holdout": item.holdout_served_share}
        numbers |= {f"coverage.{item.name}.{name}": share for name, share in shares.items() if share is not None}
    for kind in ("confirmed", "traffic", "screen"):
        found: Sequence[Score] = getattr(facts.card, kind)
        numbers |= {f"{kind}.{_metric(item)}": item.value for item in found if item.value is not None}
    controls = controls_of(facts.decisions)
    return numbers | {"controls": float(controls.count), "controls.promoted": float(controls.promoted)}


def page(facts: RunFacts) -> str:
    """The run as Markdown: what was decided, what it is worth, what failed and why, and how much was left out."""
    failures = failure_rows(facts.screen, facts.snapshot, facts.solutions)
    parts = [
        *_head(facts),
        "## Decisions", *_decided(facts),
        "## Scores", scores_section(facts.card),
        "## Served calls", coverage_section(facts.coverage),
        "## Cold path", cold_section(facts.cold),
        "## Roofline", roofline_section(facts.card.roofline),
        "## Controls and false discoveries",
        control_section(controls_of(facts.decisions), discoveries_of(facts.decisions)),
        "## Failures", table(failures, ("definition", "solution", "status", "rule", "workloads", "reason")),
        "## Toothless workloads", "Their rules would let a plainly wrong output pass; they support no promotion.",
        table(toothless_rows(facts.screen, facts.snapshot), ("definition", "axes", "mutations that pass")),
        "## What became of everything", table(account_rows(facts.accounts), ("of", "what", "count", "share")),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _head(facts: RunFacts) -> list[str]:
    numbers, promoted = metrics(facts), verdict_counts(facts.decisions)["promoted"]
    counts = ", ".join(f"{count} {status}" for status, count in status_counts(facts.screen).items())
    return [
        f"# Run on snapshot `{facts.snapshot.digest[7:19]}`",
        f"Profile **{facts.profile}**, channel **{facts.channel}**, index `{facts.index_digest[7:19]}`.",
        f"{promoted} of {len(facts.decisions)} keys promoted, {len(facts.decisions) - promoted} kept the incumbent. "
        f"Screen: {counts or 'nothing'}; {len(facts.not_applicable)} pairs not applicable; "
        f"INVALID {numbers['invalid_share']:.1%}; quarantined {facts.quarantined_count} of {facts.read_count} lines.",
        *([f"**not published**: {facts.not_published}"] if facts.not_published else []),
    ]


def _decided(facts: RunFacts) -> list[str]:
    failed = ", ".join(f"{count} {name}" for name, count in failed_counts(facts.decisions).items() if count)
    rows = decision_rows(facts.decisions, facts.solutions)
    return [
        "Conditions in order: significance, minimum effect, gates passed, gates not slower; of a kept key, those of "
        f"its best finalist. {f'Failed by kept keys: {failed}.' if failed else ''}".rstrip(),
        table(rows, ("definition", "key", "solution", "ratio", "interval", "rounds", "conditions", "reason")),
    ]


def _metric(score: Score) -> str:
    parts = [score.name, *([] if score.parameter is None else [f"{score.parameter:g}"]), score.side]
    return ".".join([*parts, *([] if score.definition == EVERY else [score.definition])])

"""The run as one page of Markdown: sections in the order in which a person asks.

In: rows and scores. Out: text. Computes nothing but percentages for display.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from fib_core.account.controls import Controls, Discoveries
from fib_core.account.coverage import Coverage
from fib_core.account.scorecard import Scorecard
from fib_core.account.scoring import EVERY, Score

COLD_SHOWN = 12
ROOFLINE_SHOWN = 20
Row = dict[str, Any]


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """A Markdown table; a dash where there is nothing to show."""
    if not rows:
        return "None."
    head = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(head + ["| " + " | ".join(_cell(row.get(name)) for name in columns) + " |" for row in rows])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        value = f"{value:.3f}"
    if isinstance(value, list | tuple):
        value = "-".join(f"{part:.2f}" for part in value)
    text = str(value if value not in (None, "") else "-")
    return text.replace("|", "\\|").replace("\n", " ")


def scores_section(card: Scorecard) -> str:
    """Each score in its own row with what it must be quoted with; confirmed ones, traffic, then the screen's.

    Where fast_p and areas of all definitions together are there, those of each one are left to the tracker's table.
    """
    columns = ("score", "definition", "side", "value", "counted", "left out", "times", "weights", "baseline")
    shown = (*together(card.confirmed), *card.traffic, *together(card.screen))
    return table([score_row(item) for item in shown], columns)


def coverage_section(coverage: Iterable[Coverage]) -> str:
    """Calls of the logs inside a measured box and served by a promotion; held-out families apart."""
    columns = ("definition", "calls", "inside", "served", "holdout calls", "holdout inside", "holdout served", "boxes")
    rows = [
        {
            "definition": item.name, "calls": item.calls, "inside": percent(item.inside_share),
            "served": percent(item.served_share), "holdout calls": item.holdout_calls,
            "holdout inside": percent(item.holdout_inside_share), "holdout served": percent(item.holdout_served_share),
            "boxes": f"{item.boxes} ({item.point_boxes} of one point)",
        }
        for item in coverage
    ]  # fmt: skip
    return table(rows, columns)


def roofline_section(rows: Sequence[Row]) -> str:
    """Shares of the roofline per workload, the furthest first; all of them are in the tracker's table."""
    shown = sorted(rows, key=lambda row: row["incumbent"])[:ROOFLINE_SHOWN]
    cells = [
        {
            "definition": row["definition"], "axes": ", ".join(f"{n}={s}" for n, s in row["axes"].items()),
            "side": row["side"], "roofline us": row["roofline_us"], "incumbent": percent(row["incumbent"]),
            "served": percent(row["served"]),
        }
        for row in shown
    ]  # fmt: skip
    note = "Bound time / measured time, at peaks measured on this device; 100% is the roofline."
    more = f" The {len(shown)} furthest of {len(rows)} workloads." if len(rows) > len(shown) else ""
    return note + more + "\n\n" + table(cells, ("definition", "axes", "side", "roofline us", "incumbent", "served"))


def cold_section(rows: Sequence[Row]) -> str:
    """Build, first call, worst first call on a new shape: the slowest solutions."""
    cells = [
        {
            "definition": row["definition"], "solution": row["solution"], "build": seconds(row["build_s"]),
            "first call": duration(row["worst_first_call_us"]), "new shape": duration(row["worst_first_shape_us"]),
            "at": row["worst_shape"],
        }
        for row in rows[:COLD_SHOWN]
    ]  # fmt: skip
    note = "Outside every ratio above: the worst first call of a process, and on a new shape in one that runs already."
    more = f" The slowest {COLD_SHOWN} of {len(rows)}." if len(rows) > COLD_SHOWN else ""
    return note + more + "\n\n" + table(cells, ("definition", "solution", "build", "first call", "new shape", "at"))


def control_section(controls: Controls, found: Discoveries) -> str:
    """Controls, then false discoveries, in sentences."""
    if not controls.count:
        return "No key was judged."
    lines = [
        f"{controls.promoted} of {controls.count} controls (the incumbent under a false name) would be promoted. "
        f"{controls.covering} of their 95 % intervals contain 1. Off by {(controls.typical or 1) - 1:.1%} typically, "
        f"{(controls.widest or 1) - 1:.1%} at most.",
    ]
    if found.tested:
        worst = f"; the largest adjusted p of a promotion is {found.worst:.2g}" if found.worst is not None else ""
        lines.append(
            f"Over {found.tested} keys tested (Benjamini-Hochberg) {found.found} differ from the incumbent at a false "
            f"discovery rate of 5 %; {found.promoted} are promoted{worst}."
        )
    return "\n".join(lines)


def percent(share: float | None) -> str | None:
    """Whole percents; tenths below ten; a plain small number where that would read as nothing."""
    if share is None or share >= 0.1 or share == 0:
        return None if share is None else f"{share:.0%}"
    return f"{share:.1%}" if share >= 0.001 else f"{share:.2g}"


def duration(us: float | None) -> str | None:
    """Microseconds in the unit that a person reads."""
    if us is None:
        return None
    return f"{us:.0f} us" if us < 1e3 else f"{us / 1e3:.1f} ms" if us < 1e6 else f"{us / 1e6:.2f} s"


def seconds(value: float | None) -> str | None:
    """A duration given in seconds."""
    return None if value is None else duration(value * 1e6)


def together(scores: Sequence[Score]) -> Sequence[Score]:
    """Those of all definitions together; every one where there is but one definition."""
    return [item for item in scores if item.definition == EVERY] or scores


def score_row(score: Score) -> Row:
    """One score for a person: digests shortened, what was left out in words."""
    left_out = [f"{count} {why}" for why, count in (("INVALID", score.invalid), ("untimed", score.untimed)) if count]
    baseline = score.baseline[0][7:19] if len(score.baseline) == 1 else f"{len(score.baseline)} incumbents"
    return {
        "score": title(score), "definition": score.definition, "side": score.side, "value": score.value,
        "counted": f"{score.count} {score.population}", "left out": ", ".join(left_out), "times": score.times,
        "weights": score.weights, "baseline": baseline,
    }  # fmt: skip


def title(score: Score) -> str:
    """``fast_1.1``, ``area to 4``, ``weighted speedup``."""
    if score.parameter is None:
        return score.name.replace("_", " ")
    return f"fast_{score.parameter:g}" if score.name == "fast_p" else f"{score.name} to {score.parameter:g}"

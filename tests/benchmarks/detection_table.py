"""The detection report as totals and as a page. Plain data in, plain data out.

In: rows as bench_detection writes them. Out: counts per judge, and Markdown. A cheat is *caught* by any verdict but a
pass, *neutralised* where it passed at its true time, *missed* otherwise.
"""

from collections import Counter
from typing import Any

Row = dict[str, Any]
SECTIONS = {
    "device": ("On the CUDA device", ("cuda", "ported")),
    "host": ("The CPU corpus on the CPU", ("cpu",)),
}
NOTE = """A cheat is *caught* by any verdict but a pass, *neutralised* where it passed at its true time (no effect),
*missed* otherwise; *refused* is a spoiled visit, which is nobody's pass. The peer's verdict is on the last, odd-shaped
workload of each definition, with its default settings and its isolated runner; *host* means its evaluator's comparison
run on a CPU, without its timing. The static column is a reading of KernelBench's published rules, not its code:
**rejects**, or (warns). Ported files are the CPU corpus with allocations, and what burns time, moved to the device.
"""


def totals(rows: list[Row]) -> dict[str, Any]:
    """Outcomes per section, judge and side."""
    found: dict[str, Any] = {}
    for name, (_, origins) in SECTIONS.items():
        mine = [row for row in rows if row["origin"] in origins]
        if mine:
            sides = {"cheats": [row for row in mine if row["id"] != "honest"]}
            sides["honest"] = [row for row in mine if row["id"] == "honest"]
            found[name] = {side: _counts(listed) for side, listed in sides.items()}
    return found


def _counts(rows: list[Row]) -> dict[str, Any]:
    static = Counter("rejects" if row["static"]["rejects"] else "warns" if row["static"]["warns"] else "silent"
                     for row in rows if row["static"] is not None)  # fmt: skip
    peer = Counter(row["peer"]["outcome"] if "peer" in row else "not run" for row in rows)
    return {"rows": len(rows), "ours": dict(Counter(row["outcome"] for row in rows)), "peer": dict(peer),
            "static": dict(static)}  # fmt: skip


def in_order(rows: list[Row]) -> list[Row]:
    """By the catalogue's numbers, honest kernels last."""

    def place(row: Row) -> tuple[bool, str, int, str]:
        number = "".join(filter(str.isdigit, row["id"]))
        return row["id"] == "honest", row["id"][0], int(number or 0), row["file"]

    return sorted(rows, key=place)


def markdown(body: dict[str, Any]) -> str:
    """The page."""
    lines = ["# Detection: the adversary corpus before three judges", "", NOTE]
    for run in body["runs"]:
        where = run["environment"]
        facts = [f"{name} {where[name]}" for name in ("device_name", "device_class", "torch", "judge") if name in where]
        note = f"; {run['note']}" if "note" in run else ""
        lines.append(f"- `{run['command']}`: {', '.join(facts)}; {run.get('wall_s', '?')} s{note}")
    if body["not_judged_on_device"]:
        lines.append(f"- not judged on the device in their present form: {', '.join(body['not_judged_on_device'])}")
    lines += ["", *_totals_table(body["totals"])]
    for name, (title, origins) in SECTIONS.items():
        mine = [row for row in body["rows"] if row["origin"] in origins]
        if mine:
            lines += ["", f"## {title}", "", *_rows_table(mine, name)]
    return "\n".join(lines) + "\n"


def _totals_table(found: dict[str, Any]) -> list[str]:
    lines = ["| where | files | judge | outcomes |", "|---|---|---|---|"]
    for name, sides in found.items():
        for side, counts in sides.items():
            for judge in ("ours", "peer", "static"):
                told = ", ".join(f"{what} {count}" for what, count in sorted(counts[judge].items()))
                lines.append(f"| {name} | {counts['rows']} {side} | {judge} | {told} |")
    return lines


def _rows_table(rows: list[Row], section: str) -> list[str]:
    lines = ["| row | file | attack | claim | ours | peer | static |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        file = row["file"] if row["origin"] != "ported" else f"{row['file']} (ported)"
        cells = [row["id"], file, row["title"], row["claim"], _ours(row), _peer(row), _static(row)]
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
    return lines


def _ours(row: Row) -> str:
    verdicts = dict.fromkeys(
        one["status"] if one["rule"] is None else f"{one['status']}({one['rule']})" for one in row["ours"]["verdicts"]
    )
    times = [us for one in row["ours"]["verdicts"] for us in one["samples_us"] if one["status"] == "PASSED"]
    told = times and row["outcome"] in ("neutralised", "missed")
    shown = f", {min(times):.4g} to {max(times):.4g} us" if told else ""
    words = ", ".join(verdicts) or row["ours"]["reason"][:60]
    return f"{_loud(row['outcome'])}: {words}{shown}"


def _peer(row: Row) -> str:
    peer = row.get("peer")
    if peer is None:
        return "not run"
    latency = f", {1000 * peer['latency_ms']:.4g} us" if peer.get("latency_ms") is not None else ""
    true = f" (the work takes {row['true_us']:.4g} or more)" if latency and row["true_us"] else ""
    where = " (host)" if peer.get("where") == "host" or (row["origin"] == "cpu") else ""
    return f"{_loud(peer['outcome'])}: {peer['status']}{latency}{true}{where}"


def _loud(outcome: str) -> str:
    return f"**{outcome}**" if outcome in ("missed", "rejected") else outcome


def _static(row: Row) -> str:
    if row["static"] is None:
        return "-"
    rejects, warns = row["static"]["rejects"], row["static"]["warns"]
    return ", ".join([f"**{name}**" for name in rejects] + [f"({name})" for name in warns]) or "silent"

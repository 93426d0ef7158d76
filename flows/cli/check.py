"""``fib check`` and ``fib export``: what a dataset folder holds, and writing it again in the public layout.

In: a folder. Out: counts that sum to what was read, problems with file, line and reason; exit code 0, 1 (something was
quarantined) or 2 (no dataset there).
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

MAX_LISTED = 40


def register(app: typer.Typer) -> None:
    """Add ``fib check`` and ``fib export``."""
    app.command("check")(check)
    app.command("export")(export)


def check(
    dataset: Annotated[Path, typer.Argument(help="folder in the flashinfer-trace layout")],
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="list every problem instead of groups")] = False,
) -> None:
    """Read DATASET completely and say what is accepted, what waits for a blob, and what is quarantined and why."""
    from fib_core.inspect_dataset import check_report

    content = _read(dataset, quiet=as_json)
    report = check_report(content)
    if as_json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        _show(content, report, show_all)
    raise typer.Exit(1 if report["problems"] else 0)


def export(
    dataset: Annotated[Path, typer.Argument(help="folder in the flashinfer-trace layout")],
    out: Annotated[Path, typer.Argument(help="new or empty folder")],
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Write what DATASET holds, without what is quarantined, as a folder that the public tools load."""
    from rich.console import Console

    from fib_core.errors import ContractError
    from tasks.dataset import export_dataset

    content = _read(dataset, quiet=as_json)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        _refuse(f"{out}: is not an empty folder; name a new one")
    try:
        export_dataset(content, out)
    except (ContractError, OSError) as error:
        _refuse(str(error))
    if as_json:
        counts = {name: len(getattr(content, name)) for name in ("definitions", "solutions", "workloads", "traces")}
        sys.stdout.write(json.dumps({"out": str(out), **counts, "quarantined": len(content.quarantined)}) + "\n")
        return
    rows = f"{len(content.workloads)} workload rows, {len(content.traces)} traces"
    words = f"Wrote {len(content.definitions)} definitions, {len(content.solutions)} solutions, {rows} to {out}"
    Console().print(words, highlight=False, markup=False, soft_wrap=True)


def _read(dataset: Path, quiet: bool) -> Any:
    from rich.console import Console

    from fib_core.errors import ContractError
    from tasks.dataset import check_dataset

    console = Console(stderr=True)
    try:
        if quiet or not console.is_terminal:
            return check_dataset(dataset)
        with console.status("reading") as status:
            return check_dataset(dataset, lambda file: status.update(f"reading {file}"))
    except ContractError as error:
        _refuse(str(error))


def _refuse(words: str) -> None:
    from rich.console import Console

    Console(stderr=True).print(words, highlight=False, markup=False, soft_wrap=True)
    raise typer.Exit(2)


def _show(content: Any, report: dict[str, Any], show_all: bool) -> None:
    from rich.console import Console

    from fib_core.inspect_dataset import quarantined_by_kind

    console = Console()
    console.print(_counts_table(content, report, quarantined_by_kind(content)))
    missing = content.missing_blobs
    if missing:
        waiting = report["workloads"]["missing_blob"]
        first = next(iter(missing))
        words = f"{waiting} workload rows wait for {len(missing)} captured files that are not here, first {first}"
        console.print(words, highlight=False, markup=False, soft_wrap=True)
    if report["problems"]:
        _show_problems(console, content, show_all)
    else:
        console.print("Nothing is quarantined.")


def _counts_table(content: Any, report: dict[str, Any], bad: Any) -> Any:
    from rich.table import Table

    table = Table(title=str(content.root), title_justify="left")
    table.add_column("what")
    for name in ("read", "accepted", "blob missing", "quarantined"):
        table.add_column(name, justify="right")
    for kind, label in (("definition", "definitions"), ("workload", "workload rows"), ("trace", "traces")):
        counts = report["workloads" if kind == "workload" else label]
        missing = counts.get("missing_blob")
        blank = "" if missing is None else missing
        cells = (content.read.get(kind, 0), counts["accepted"], blank, counts["quarantined"])
        table.add_row(label, *map(str, cells))
    for kind, label in (("solution", "solutions"), ("call", "logged calls")):
        cells = (content.read.get(kind, 0), content.accepted.get(kind, 0), "", bad[kind])
        table.add_row(label, *map(str, cells))
    return table


def _show_problems(console: Any, content: Any, show_all: bool) -> None:
    from fib_core.inspect_dataset import grouped_problems

    groups = grouped_problems(content)
    if show_all:
        lines = [f"{_place(row.file, row.line)}: {row.reason}" for row in content.quarantined]
    else:
        lines = [f"{count:>6} x {kind}: {reason}\n         first at {place}" for kind, reason, count, place in groups]
        rest = len(lines) - MAX_LISTED
        more = [f"... and {rest} more kinds of problem; --all lists every one"] if rest > 0 else []
        lines = lines[:MAX_LISTED] + more
    console.print("\nQuarantined, with the reason", style="bold")
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if line else file

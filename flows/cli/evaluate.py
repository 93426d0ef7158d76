"""``fib evaluate``: one solution against one definition, on this machine's device, verdicts printed."""

import json
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table


def register(app: typer.Typer) -> None:
    """Add ``fib evaluate``."""
    app.command("evaluate")(evaluate)


def evaluate(
    definition: Annotated[Path, typer.Argument(help="definition JSON file")],
    solution: Annotated[Path, typer.Argument(help="solution JSON file")],
    workloads: Annotated[Path | None, typer.Option(help="workload rows (JSONL); default: a small valid set")] = None,
    blobs: Annotated[Path | None, typer.Option(help="dataset root for safetensors paths")] = None,
    limit_s: Annotated[float, typer.Option(help="time limit of the whole visit, seconds")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Judge a solution: build it, compare every output with the reference, time it. Exit 1 if any workload fails."""
    from tasks import evaluate as task
    from tasks.reading import load_definition, load_solution, load_workload_rows
    from tasks.settings import Settings

    contract, candidate = load_definition(definition), load_solution(solution)
    if workloads is None:
        bound = task.invented_workloads(contract)
    else:
        bound = task.bind_rows(contract, load_workload_rows(workloads))
    root = blobs or (_dataset_root(workloads) if workloads else None)
    results = task.evaluate(Settings(), contract, candidate, bound, root, limit_s)
    labels = {workload.digest: workload.uuid or _label(workload.axes) for workload in bound}
    rows = [_row(labels[item.job.workload_digest], item) for item in results]
    if as_json:
        print(json.dumps({"evaluations": rows}, indent=2))  # noqa: T201 - the machine-readable answer goes to stdout
    else:
        _show(candidate.name, rows)
    raise typer.Exit(0 if all(row["status"] == "PASSED" for row in rows) else 1)


def _row(workload: str, item: Any) -> dict[str, Any]:
    return {
        "workload": workload,
        "status": item.status.value,
        "rule": item.rule,
        "reason": item.reason,
        "errors": {name: figures.model_dump(mode="json") for name, figures in item.errors.items()},
        "samples": {"unit": "us", "timer": item.job.timer, "values": list(item.samples_us)},
    }


def _label(axes: dict[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in axes.items())


def _dataset_root(workloads: Path) -> Path:
    """The folder above ``workloads/`` if the file lies in a dataset, else its own folder."""
    for parent in workloads.resolve().parents:
        if parent.name == "workloads":
            return parent.parent
    return workloads.resolve().parent


def _show(name: str, rows: list[dict[str, Any]]) -> None:
    table = Table(title=name)
    for column in ("workload", "status", "rule", "median us", "max abs error", "reason"):
        table.add_column(column, overflow="fold")
    for row in rows:
        values = row["samples"]["values"]
        worst = [figures["max_abs"] for figures in row["errors"].values() if figures["max_abs"] is not None]
        table.add_row(
            row["workload"], row["status"], row["rule"] or "", f"{median(values):.1f}" if values else "",
            f"{max(worst):.3g}" if worst else "", row["reason"][:300],
        )  # fmt: skip
    Console().print(table)

"""``fib run``: the whole pipeline on a dataset; prints what was decided and where to look."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table

from flows.cli.durations import duration_s, further, published

if TYPE_CHECKING:
    from schemas.decision import Profile

REASONS_SHOWN = 40
_FOR_PEOPLE = ("failures", "decisions", "closing")
"""Parts of a summary that a script finds elsewhere: in the store, on the flow run page."""

WIDTH_IN_FILES = 160


def register(app: typer.Typer) -> None:
    """Add ``fib run``."""
    app.command("run")(run)


def run(  # noqa: PLR0913, PLR0917 - one parameter per option
    dataset: Annotated[Path | None, typer.Option(help="flashinfer-trace folder; default: the bundled data")] = None,
    profile: Annotated[str | None, typer.Option(help="quick or full")] = None,
    channel: Annotated[str | None, typer.Option(help="channel to publish to (stable refuses quick)")] = None,
    store: Annotated[str | None, typer.Option(help="object store: a directory or s3://bucket/prefix")] = None,
    definition: Annotated[list[str] | None, typer.Option(help="only these (repeat); its index holds no others")] = None,
    budget: Annotated[str | None, typer.Option("--for", help="stop cleanly after this: 90s, 10m, 1h")] = None,
    campaign: Annotated[int | None, typer.Option(min=0, help="another number: fresh rounds, same screen")] = None,
    campaigns: Annotated[int | None, typer.Option(min=1, help="this many campaigns; the first is published")] = None,
    new_signer: Annotated[bool, typer.Option("--new-signer", help="go on with a channel that another signed")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON on stdout")] = False,
) -> None:
    """Run the pipeline: collect, dedup, split, screen, confirm, dispatch, publish, report.

    Start the same command again after an interruption: finished evaluations are found by Job and not repeated.
    With --for the run stops between two visits once the time is spent (exit code 0; --json says "stopped": true).
    An index that its channel was rolled back from is not published again (exit code 0; --json: "not_published": why).
    Exit codes: 0 done; 2 bad input; 3 too many evaluations spoiled by the machine.
    """
    from tasks.ahead import start_ahead
    from tasks.asked import require_run
    from tasks.last_watch import set_last_watch
    from tasks.quiet import prepare_environment
    from tasks.settings import Settings, settings_from

    settings = Settings()
    chosen = _profile(profile)
    budget_s = duration_s(budget) if budget is not None else None
    numbers = _numbers(settings.campaign if campaign is None else campaign, campaigns, campaign is not None)
    asked = settings_from(
        dataset=dataset, profile=chosen, channel=channel, store=store, new_signer=new_signer or None
    )
    require_run(asked, definition)
    prepare_environment(settings.home)
    from tasks.wiring import reach_cluster

    reach_cluster(settings)
    start_ahead(asked, definition)
    set_last_watch()
    from flows.pipeline import pipeline

    summary = pipeline(dataset, chosen, channel, store, definition, numbers, budget_s, new_signer or None)
    if as_json:
        shape = {name: value for name, value in summary.items() if name not in _FOR_PEOPLE}
        print(json.dumps(shape, indent=2))  # noqa: T201 - the machine-readable answer goes to stdout
        return
    (show if summary["index_digest"] else show_stopped)(summary, settings.home)


def _profile(name: str | None) -> "Profile | None":
    from fib_core.errors import ContractError

    if name in (None, "quick", "full"):
        return cast("Profile | None", name)
    raise ContractError(f"--profile {name!r} is unknown; choose quick or full")


def _numbers(first: int, count: int | None, given: bool) -> list[int] | None:
    """Campaign numbers from the first on; None leaves them to the settings."""
    return list(range(first, first + (count or 1))) if given or count is not None else None


def show_stopped(summary: dict[str, Any], home: Path) -> None:
    """Say how far a run came that stopped before it could publish."""
    from tasks.stopped import page

    console = Console(width=None if sys.stdout.isatty() else WIDTH_IN_FILES)
    console.print(page(summary), highlight=False, soft_wrap=True)
    console.print(f"What was measured: {home}; fib ui shows flow run {summary['flow_run_id']}", soft_wrap=True)


def show(summary: dict[str, Any], home: Path) -> None:
    """Print the decisions, the failures, the counts and where to look."""
    # A log file has no width of its own; 80 columns would fold every cell.
    console = Console(width=None if sys.stdout.isatty() else WIDTH_IN_FILES)
    console.print(_promotions(summary["decisions"]))
    console.print(_kept(summary["decisions"]))
    console.print(_failures(summary["failures"]))
    counts = ", ".join(f"{count} {status}" for status, count in summary["evaluations"].items())
    lines = [
        f"op types     {', '.join(summary['op_types'])}",
        f"evaluations  {counts}",
        f"keys         {len(summary['promoted'])} promoted, {summary['kept_incumbent']} kept the incumbent",
        f"snapshot     {summary['snapshot_digest']}",
        *published(summary),
        f"took         {summary['wall_s']:.0f} s",
        *further(summary),
        *summary.get("closing", ()),
        "",
        "Where to look",
        f"  fib ui                     Prefect (flow run {summary['flow_run_id']}) and MLflow (run "
        f"{summary['mlflow_run_id']}) on {home}",
        "  fib explain DEFINITION axis=value...   which entry serves a call, on what evidence",
        "  fib pull                   what a server does: fetch the index and its solutions",
    ]
    console.print("\n".join(lines), highlight=False, soft_wrap=True)


def _promotions(rows: list[dict[str, Any]]) -> Table:
    table = _table("Promoted", ("definition", "key", "solution", "ratio", "95 % interval", "rounds"))
    for row in (row for row in rows if row["verdict"] == "promoted"):
        low, high = row["interval"]
        table.add_row(
            row["definition"], row["key"], row["solution"], f"{row['ratio']:.2f}x", f"{low:.2f}-{high:.2f}",
            str(row["rounds"]),
        )  # fmt: skip
    return table


def _kept(rows: list[dict[str, Any]]) -> Table:
    table = _table("Kept the incumbent", ("definition", "key", "why"))
    kept = [row for row in rows if row["verdict"] != "promoted"]
    for row in kept[:REASONS_SHOWN]:
        table.add_row(row["definition"], row["key"], row["reason"])
    if len(kept) > REASONS_SHOWN:
        table.add_row("...", "", f"{len(kept) - REASONS_SHOWN} more on the flow run page")
    return table


def _failures(rows: list[dict[str, Any]]) -> Table:
    table = _table("Failing candidates", ("definition", "solution", "status", "rule", "workloads", "reason"))
    for row in rows:
        table.add_row(
            row["definition"], row["solution"], row["status"], row["rule"], str(row["workloads"]),
            row["reason"].splitlines()[0][:160] if row["reason"] else "",
        )  # fmt: skip
    return table


def _table(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table

"""``fib gc``: what no channel reaches is marked, and a day later deleted."""

import json
from typing import Annotated

import typer
from rich.console import Console

SHOWN = 20


def register(app: typer.Typer) -> None:
    """Add ``fib gc``."""
    app.command("gc")(collect)


def collect(
    store: Annotated[str, typer.Option(help="store; default FIB_STORE or FIB_HOME/store")] = "",
    keep_days: Annotated[float, typer.Option(min=0, help="keep indexes that a channel named within these days")] = 90,
    grace_hours: Annotated[int, typer.Option(min=1, help="hours between marking and deleting")] = 24,
    delete: Annotated[bool, typer.Option("--delete", help="do it; without it only say what would be")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Collect indexes, solutions, pointers and signatures that no channel's history reaches, in two steps.

    The first `fib gc --delete` marks them; one that is run after the grace period deletes what is still unreached.
    Snapshots, definitions, evaluations and decisions are the record and are never deleted. Safe beside publishers.
    """
    from tasks import release

    found = release.collect(store or None, keep_days, grace_hours * 3600, dry_run=not delete)
    if as_json:
        typer.echo(json.dumps({"dry_run": not delete} | found._asdict()))
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    would = "" if delete else "would be "
    for keys, what in ((found.deleted, "deleted"), (found.marked, f"marked, to be deleted in {grace_hours} h")):
        for key in keys[:SHOWN]:
            console.print(f"{would}{what}: {key}")
        if len(keys) > SHOWN:
            console.print(f"... and {len(keys) - SHOWN} more")
    console.print(
        f"{found.reached} reached, {len(found.deleted)} {would}deleted, {len(found.waiting)} marked before, "
        f"{len(found.marked)} {would}marked now"
    )
    if not delete:
        console.print("nothing was changed; add --delete")

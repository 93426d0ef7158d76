"""``fib pull``: fetch a channel's index and its solutions into the local cache, verified by digest."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from fib_core.runtime.pulled import PulledIndex


def register(app: typer.Typer) -> None:
    """Add ``fib pull``."""
    app.command("pull")(pull)


def pull(
    source: Annotated[str, typer.Option("--from", help="store to pull from; default FIB_STORE or FIB_HOME/store")] = "",
    channel: Annotated[str, typer.Option(help="channel to follow; default FIB_CHANNEL or quick")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Fetch the index that a channel names, with all that serving it needs; afterwards no network is needed."""
    from fib_core.runtime.index_client import pull as fetch

    pulled = fetch(source or None, channel or None)
    counts = _entry_counts(pulled)
    if as_json:
        typer.echo(json.dumps(_summary(pulled) | {"entries": counts}))
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{pulled.channel} ({pulled.index.profile}) is {pulled.index_digest} for {pulled.index.device_class}")
    console.print(
        f"{len(pulled.definitions)} definitions; {counts['solution']} entries with a chosen solution, "
        f"{counts['incumbent']} that keep the incumbent; {pulled.fetched_count} objects fetched"
    )
    console.print(f"cache: {pulled.cache_dir}    serve it: import fib_core.runtime as fib; fib.load()")


def _summary(pulled: "PulledIndex") -> dict[str, Any]:
    return {
        "index_digest": pulled.index_digest,
        "channel": pulled.channel,
        "profile": pulled.index.profile,
        "source": pulled.source,
        "previous": pulled.previous,
        "cache": str(pulled.cache_dir),
        "device_class": pulled.index.device_class,
        "definitions": len(pulled.definitions),
        "solutions": len(pulled.solutions),
        "fetched": pulled.fetched_count,
    }


def _entry_counts(pulled: "PulledIndex") -> dict[str, int]:
    chosen = [entry.solution_digest is not None for item in pulled.index.definitions for entry in item.entries]
    return {"solution": sum(chosen), "incumbent": len(chosen) - sum(chosen)}

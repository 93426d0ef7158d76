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
    counts, stale = _entry_counts(pulled), _stale(pulled)
    if as_json:
        typer.echo(json.dumps(_summary(pulled) | {"entries": counts, "stale": stale}))
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{pulled.channel} ({pulled.index.profile}) is {pulled.index_digest} for {pulled.index.device_class}")
    console.print(
        f"{len(pulled.definitions)} definitions; {counts['solution']} entries with a chosen solution, "
        f"{counts['incumbent']} that keep the incumbent; {pulled.fetched_count} objects fetched"
    )
    for item in stale:
        console.print(f"stale here: {item['definition']} [{item['key']}]: {'; '.join(item['reasons'])}")
    trust = f"signed by {pulled.signed_by}" if pulled.signed_by else "signatures were not checked (FIB_TRUSTED_KEYS)"
    console.print(trust)
    console.print(f"cache: {pulled.cache_dir}    serve it: import fib_core.runtime as fib; fib.load()")


def _summary(pulled: "PulledIndex") -> dict[str, Any]:
    return {
        "index_digest": pulled.index_digest,
        "channel": pulled.channel,
        "profile": pulled.index.profile,
        "source": pulled.source,
        "previous": pulled.previous,
        "signed_by": pulled.signed_by,
        "cache": str(pulled.cache_dir),
        "device_class": pulled.index.device_class,
        "definitions": len(pulled.definitions),
        "solutions": len(pulled.solutions),
        "fetched": pulled.fetched_count,
    }


def _entry_counts(pulled: "PulledIndex") -> dict[str, int]:
    """Entries with a solution, and keys that keep the incumbent: listed apart, or as entries of an old index."""
    definitions = pulled.index.definitions
    chosen = [entry.solution_digest is not None for item in definitions for entry in item.entries]
    kept = sum(len(item.kept) for item in definitions)
    return {"solution": sum(chosen), "incumbent": len(chosen) - sum(chosen) + kept}


def _stale(pulled: "PulledIndex") -> list[dict[str, Any]]:
    """Entries that this host's libraries or driver make stale: they are not served here, and why."""
    from fib_core.runtime.explanation import stale_entries, table_of

    return [
        {"definition": item.name} | found
        for item in pulled.index.definitions
        for found in stale_entries(table_of(pulled, item))
    ]

"""``fib promote``: let one channel name the index that another names, under the terms of a publication."""

import json
from typing import Annotated

import typer
from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add ``fib promote``."""
    app.command("promote")(promote)


def promote(
    source: Annotated[str, typer.Option("--from", help="channel whose index is taken")],
    target: Annotated[str, typer.Option("--to", help="channel that is moved (stable refuses quick)")],
    store: Annotated[str, typer.Option(help="their store; default FIB_STORE or FIB_HOME/store")] = "",
    sign: Annotated[bool, typer.Option("--sign", help="vouch for an index that carries no signature yet")] = False,
    new_signer: Annotated[bool, typer.Option("--new-signer", help="go on with a channel that another signed")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Move a channel to the index of another, verified whole, signed where keys are set, and proved reachable.

    Doing it again changes nothing. If somebody else moves the channel meanwhile, this reports it and moves nothing.
    """
    from tasks import release

    pointer = release.promote(store or None, source, target, sign, new_signer)
    if as_json:
        typer.echo(json.dumps({"from": source, "channel": target} | pointer.model_dump(mode="json")))
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{target} names {pointer.index_digest} since {pointer.published_at} (move {pointer.number})")

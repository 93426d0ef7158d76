"""``fib channel``, ``fib history`` and ``fib rollback``: what channels name, what they named, and back to it."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from fib_core.ports import ObjectStore

Channel = Annotated[str, typer.Argument(help="channel; default FIB_CHANNEL or quick")]
Store = Annotated[str, typer.Option("--store", help="its store; default FIB_STORE or FIB_HOME/store")]
AsJson = Annotated[bool, typer.Option("--json", help="print only JSON")]
NewSigner = Annotated[bool, typer.Option("--new-signer", help="go on with a channel that another signed")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("channel")(show)
    app.command("history")(history)
    app.command("rollback")(rollback)


def show(source: Store = "", as_json: AsJson = False) -> None:
    """List the channels of a store: which index each names, since when, and who signed that.

    A channel whose pointer cannot be read is listed as damaged, with the way to restore it; the exit code is 1 then.
    """
    from fib_core.publication.history import channels
    from fib_core.runtime.index_client import open_store

    store = open_store(source or None)
    rows = [_newest(store, name) for name in channels(store)]
    if as_json:
        typer.echo(json.dumps({"store": store.url, "channels": rows}))
    else:
        console = _console()
        for row in rows:
            console.print(f"{row['channel']}: {_line(row)}")
        if not rows:
            console.print(f"{store.url} has no channel; publish one with `fib run`")
    if any("damaged" in row for row in rows):
        raise typer.Exit(1)


def history(channel: Channel = "", source: Store = "", as_json: AsJson = False) -> None:
    """List every index that a channel named, newest first; the chain of pointers is verified on the way.

    A chain that starts at move 0 was begun before histories were kept; what was before that is not known.
    """
    from fib_core.runtime import places
    from fib_core.runtime.index_client import open_store

    store, name = open_store(source or None), channel or places.channel()
    rows = list(_moves(store, name))
    if as_json:
        typer.echo(json.dumps({"store": store.url, "channel": name, "moves": rows}))
        return
    for row in rows:
        _console().print(_line(row))


def rollback(
    channel: Annotated[str, typer.Option(help="channel to move; default FIB_CHANNEL or quick")] = "",
    source: Store = "",
    to: Annotated[str, typer.Option(help="index digest from its history; default the one before the current")] = "",
    sign: Annotated[bool, typer.Option("--sign", help="vouch for the index with this process's signing key")] = False,
    new_signer: NewSigner = False,
    as_json: AsJson = False,
) -> None:
    """Move a channel back to an index that it named before, after the proof that a new index must pass.

    Nothing is deleted: the move becomes the newest of the history, and a second rollback undoes the first.
    """
    from fib_core.runtime import places
    from tasks import release

    name = channel or places.channel()
    pointer = release.rollback(source or None, name, to or None, sign, new_signer)
    if as_json:
        typer.echo(json.dumps({"channel": name} | pointer.model_dump(mode="json")))
    else:
        _console().print(f"{name}: {pointer.previous} -> {pointer.index_digest}")


def _newest(store: "ObjectStore", channel: str) -> dict[str, Any]:
    """The channel's current move; one that cannot be read must not hide the others."""
    from fib_core.errors import ContractError, StoreRefused

    try:
        return next(_moves(store, channel))
    except (ContractError, StoreRefused) as error:
        return {"channel": channel, "damaged": str(error)}


def _moves(store: "ObjectStore", channel: str) -> Iterator[dict[str, Any]]:
    """Newest first, with the ids of the keys that signed each (not checked here), and whether its index is left."""
    from fib_core.publication import history as room
    from fib_core.publish import index_key

    for pointer in room.chain(store, room.current(store, channel)):
        key = index_key(pointer.index_digest)
        yield {
            "channel": channel,
            "number": pointer.number,
            "action": pointer.action or "publish",
            "published_at": pointer.published_at,
            "index_digest": pointer.index_digest,
            "previous": pointer.previous,
            "pointer": pointer.digest,
            "signed_by": room.signers(store, pointer.digest),
            "index_kept": key in store.keys(key),
        }


def _line(row: dict[str, Any]) -> str:
    if "damaged" in row:
        return f"damaged: {row['damaged']}"
    signed = f"signed by {', '.join(row['signed_by'])}" if row["signed_by"] else "not signed"
    gone = "" if row["index_kept"] else "; the index was collected"
    return f"{row['number']:>4} {row['published_at']} {row['action']:<8} {row['index_digest']} {signed}{gone}"


def _console() -> Console:
    return Console(highlight=False, markup=False, soft_wrap=True)

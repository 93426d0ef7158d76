"""``fib rollback``: point a channel at the index it had before; one compare-and-swap, nothing is deleted."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from fib_core.ports import ObjectStore
    from schemas.index import ChannelPointer


def register(app: typer.Typer) -> None:
    """Add ``fib rollback``."""
    app.command("rollback")(rollback)


def rollback(
    channel: Annotated[str, typer.Option(help="channel to move; default FIB_CHANNEL or quick")] = "",
    source: Annotated[str, typer.Option("--store", help="its store; default FIB_STORE or FIB_HOME/store")] = "",
    to: Annotated[str, typer.Option(help="index digest to point at; default the one before the current")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Move a channel back to an index that was published before, after checking that it is whole."""
    from fib_core.runtime import places
    from fib_core.runtime.index_client import open_store

    name = channel or places.channel()
    pointer = _move(open_store(source or None), name, to)
    if as_json:
        typer.echo(json.dumps({"channel": name} | pointer.model_dump(mode="json")))
    else:
        Console(highlight=False, soft_wrap=True).print(f"{name}: {pointer.previous} -> {pointer.index_digest}")


def _move(store: "ObjectStore", channel: str, to: str) -> "ChannelPointer":
    from fib_core.errors import ContractError
    from fib_core.runtime.index_client import read_tagged_pointer
    from fib_core.runtime.local_cache import channel_key
    from fib_core.runtime.pulled import assemble
    from schemas.canonical import canonical_bytes
    from schemas.index import ChannelPointer

    now, tag = read_tagged_pointer(store, channel)
    target = to or now.previous
    if target is None:
        raise ContractError(f"channel {channel} had no index before {now.index_digest}; nothing to go back to")
    assemble(lambda key: store.get(key).body, target)
    pointer = ChannelPointer(
        index_digest=target, previous=now.index_digest, published_at=datetime.now(UTC).isoformat(timespec="seconds")
    )
    store.swap(channel_key(channel), canonical_bytes(pointer.model_dump(mode="json")), tag)
    return pointer

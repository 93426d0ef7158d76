"""``fib diff OLD NEW``: what changed between two indexes, key by key."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from fib_core.index.index_diff import Row, Side
    from schemas.index import DispatchIndex


def register(app: typer.Typer) -> None:
    """Add ``fib diff``."""
    app.command("diff")(diff)


def diff(
    old: Annotated[str, typer.Argument(help="a channel, an index digest or an index file")],
    new: Annotated[str, typer.Argument(help="the same, for the newer one")],
    store: Annotated[str, typer.Option(help="store of channels and digests; default FIB_STORE or FIB_HOME/store")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Show keys that were added or removed, or whose winner, guard, ratio or evidence changed; unchanged are counted.

    A key counts under its first change in this order; counts sum to the entries and kept keys of each index.
    """
    from fib_core.index.index_diff import counts
    from fib_core.index.index_diff import diff as compare

    one, other = _index(old, store), _index(new, store)
    rows = compare(one, other)
    if as_json:
        shown = {"old": one.digest, "new": other.digest, "counts": counts(rows)}
        typer.echo(json.dumps(shown | {"rows": [row.as_json() for row in rows]}))
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for row in rows:
        if row.change != "unchanged" or row.stale:
            console.print(_line(row))
    console.print(", ".join(f"{count} {name}" for name, count in counts(rows).items()))


def _index(name: str, store: str) -> "DispatchIndex":
    """By digest, by file, by channel."""
    from fib_core.errors import ContractError
    from fib_core.publication.history import current
    from fib_core.publish import read_index
    from fib_core.runtime.index_client import open_store
    from schemas.canonical import is_digest

    if is_digest(name):
        return read_index(open_store(store or None), name)
    if Path(name).is_file():
        return _file(Path(name))
    if ":" in name or "/" in name:
        raise ContractError(f"{name!r} is no index: neither sha256: with 64 hex digits, nor a file here, nor a channel")
    opened = open_store(store or None)
    return read_index(opened, current(opened, name).index_digest)


def _file(path: Path) -> "DispatchIndex":
    from fib_core.errors import ContractError
    from fib_core.publication.damage import in_words
    from schemas.index import DispatchIndex

    try:
        return DispatchIndex.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise ContractError(f"it is no dispatch index: {in_words(error)}", str(path)) from error


def _line(row: "Row") -> str:
    what = ", ".join((row.change, *row.also))
    stale = f"; stale: {'; '.join(row.stale)}" if row.stale else ""
    return f"{what}: {row.definition} {row.key}: {_said(row.old)} -> {_said(row.new)}{stale}"


def _said(side: "Side | None") -> str:
    if side is None:
        return "nothing"
    axes = " ".join(f"{name} {low}..{high}" for name, (low, high) in side.guard["axes"].items())
    low_high = f" [{side.interval[0]:.3f}, {side.interval[1]:.3f}]" if side.interval else ""
    return f"{side.winner}{f' {side.ratio:.3f}{low_high}' if side.ratio else ''} ({axes or 'no axis'})"

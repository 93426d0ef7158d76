"""``fib scores``: what a published index is worth, from the records behind it; nothing is measured."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from fib_core.account.past import Past
    from fib_core.account.projections import Overhead
    from fib_core.account.scorecard import Scorecard

WIDTH_IN_FILES = 160
SCORES = ("score", "definition", "side", "value", "counted", "left out", "times", "weights", "baseline")
PROJECTED = ("definition", "share_of_step", "weighted_speedup", "overhead_us", "overhead_source", "projected_speedup")


def register(app: typer.Typer) -> None:
    """Add ``fib scores``."""
    app.command("scores")(scores)


def scores(  # noqa: PLR0913, PLR0917 - one parameter per option
    channel: Annotated[str, typer.Option(help="channel to read; default FIB_CHANNEL or quick")] = "",
    source: Annotated[str, typer.Option("--from", help="its store; default FIB_STORE or FIB_HOME/store")] = "",
    p: Annotated[list[float] | None, typer.Option("--p", help="threshold of fast_p (repeat); 0 is correct")] = None,
    area_to: Annotated[float, typer.Option(help="where the area under fast_p ends")] = 4.0,
    share: Annotated[list[str] | None, typer.Option(help="DEFINITION=share of a step's time: project it")] = None,
    overhead_us: Annotated[float | None, typer.Option(help="what dispatching adds to a call, measured by you")] = None,
    overhead_from: Annotated[Path | None, typer.Option(help="the same, from the JSON of the bench `apply`")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Scores of the index that a channel names now: fast_p and its area, time saved, calls served, end-to-end gain.

    Ratios are confirmed estimates; times are those of the confirmation rounds, else of the screen. Train, holdout and
    stress stay apart. With --share a definition's gain is projected to a whole step, the cost of dispatching included.
    """
    from fib_core.account.projections import projections
    from fib_core.account.scorecard import scorecard
    from fib_core.account.scoring import THRESHOLDS
    from schemas.canonical import canonical_bytes

    shares = _shares(share or [])
    overhead = _overhead(overhead_us, overhead_from) if shares else None
    past, digest = _read(channel, source, quiet=as_json)
    _check_named(shares, past)
    card = scorecard(past.evidence, p or THRESHOLDS, area_to)
    given = past.evidence
    ahead = projections(given.snapshot, past.index, given.by, shares, overhead) if overhead is not None else []
    if as_json:
        typer.echo(canonical_bytes(_answer(past, digest, card, ahead)).decode())  # --area-to inf is no JSON number
    else:
        _show(past, digest, card, ahead)


def _read(channel: str, source: str, quiet: bool) -> "tuple[Past, str]":
    from fib_core.account.past import read_past
    from fib_core.runtime import index_client, places

    store = index_client.open_store(source or None)
    pulled = index_client.read_channel(store, channel or places.channel())
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        return read_past(store, pulled.index), pulled.index_digest
    with console.status("reading") as status:
        past = read_past(store, pulled.index, lambda what, n, of: status.update(f"reading {what} {n} of {of}"))
    return past, pulled.index_digest


def _shares(texts: list[str]) -> dict[str, float]:
    from fib_core.errors import ContractError

    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise ContractError(f"--share {text!r} is not DEFINITION=number") from None
    return found


def _check_named(shares: dict[str, float], past: "Past") -> None:
    from fib_core.errors import ContractError

    unknown = sorted(shares.keys() - {item.name for item in past.index.definitions})
    if unknown:
        raise ContractError(f"--share names {', '.join(map(repr, unknown))}, which the index does not hold")


def _overhead(us: float | None, file: Path | None) -> "Overhead":
    from fib_core.account.projections import Overhead, overhead_from_bench
    from fib_core.errors import ContractError

    if us is not None and file is None:
        return Overhead(us, "the command line")
    if file is None or us is not None:
        raise ContractError("--share needs what a dispatched call costs: --overhead-us or --overhead-from, one of them")
    try:
        return overhead_from_bench(json.loads(file.read_text()), str(file))
    except (OSError, ValueError) as error:
        raise ContractError(f"--overhead-from {file} cannot be read: {error}") from error


def _answer(past: "Past", digest: str, card: "Scorecard", ahead: list[dict[str, Any]]) -> dict[str, Any]:
    from dataclasses import asdict

    from fib_core.account.cold import cold_rows
    from fib_core.account.controls import controls_of, discoveries_of

    return {
        "index_digest": digest,
        "snapshot_digest": past.snapshot.digest,
        "profile": past.index.profile,
        "decisions": {"read": len(past.decisions), "missing": past.missing_decisions},
        "evaluations": {
            "rounds": len(past.evaluations),
            "screen": len(past.screened),
            "missing": past.missing_evaluations,
        },
        "scores": card.rows,
        "projections": ahead,
        "roofline": list(card.roofline),
        "cold": cold_rows((*past.screened, *past.evaluations), past.snapshot, past.names),
        "controls": asdict(controls_of(past.decisions)),
        "discoveries": asdict(discoveries_of(past.decisions)),
    }


def _show(past: "Past", digest: str, card: "Scorecard", ahead: list[dict[str, Any]]) -> None:
    from fib_core.account.controls import controls_of, discoveries_of
    from fib_core.account.report_page import control_section, score_row, together

    console = Console(highlight=False, width=None if Console().is_terminal else WIDTH_IN_FILES)
    console.print(f"index {digest} ({past.index.profile}), snapshot {past.snapshot.digest}", soft_wrap=True)
    lost = f", {past.missing_decisions} and {past.missing_evaluations} missing from the store"
    gone = past.missing_decisions or past.missing_evaluations
    seen = f"{len(past.evaluations)} evaluations of their rounds and {len(past.screened)} of the screen"
    console.print(f"{len(past.decisions)} decisions, {seen}{lost if gone else ''}", soft_wrap=True)
    shown = (*together(card.confirmed), *card.traffic, *together(card.screen))
    console.print(_table([score_row(item) for item in shown], SCORES))
    if ahead:
        console.print(_table(ahead, PROJECTED))
    console.print(control_section(controls_of(past.decisions), discoveries_of(past.decisions)), soft_wrap=True)


def _table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> Table:
    table = Table()
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        cells = (row.get(column) for column in columns)
        table.add_row(*(f"{cell:.3f}" if isinstance(cell, float) else str(cell or "-") for cell in cells))
    return table

"""``fib remeasure``: do published gains hold when they are measured again?"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

OPTIONS_DATASET = typer.Option(help="flashinfer-trace folder that the index was made from; default: the bundled data")


def register(app: typer.Typer) -> None:
    """Add ``fib remeasure``."""
    app.command("remeasure")(remeasure)


def remeasure(
    channel: Annotated[str | None, typer.Option(help="whose current index; default FIB_CHANNEL")] = None,
    definition: Annotated[list[str] | None, typer.Option(help="only these definitions (repeat)")] = None,
    dataset: Annotated[Path | None, OPTIONS_DATASET] = None,
    store: Annotated[str | None, typer.Option(help="object store: a directory or s3://bucket/prefix")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON on stdout")] = False,
) -> None:
    """Measure every promoted key of a channel again, in fresh processes, and compare with what was published.

    A key agrees if |log new - log published| <= 1.96 sqrt(se_new^2 + se_published^2). The index stays as it is; what
    was measured is stored. --json says "holds": at least 90 % agree and none reverses (null: nothing was compared).
    Exit codes: 0 measured, whatever came out; 2 bad input.
    """
    from tasks.asked import require_remeasure
    from tasks.last_watch import set_last_watch
    from tasks.quiet import prepare_environment
    from tasks.settings import settings_from

    settings = settings_from(channel=channel, dataset=dataset, store=store)
    require_remeasure(settings, definition)
    prepare_environment(settings.home)
    from tasks.wiring import reach_cluster

    reach_cluster(settings)
    set_last_watch()
    from flows.remeasure import remeasure as flow

    answer = flow(channel, definition, dataset, store)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    show(answer)


def show(answer: dict[str, Any]) -> None:
    """One line per key, then the counts."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for row in answer["keys"]:
        console.print(_line(row))
    console.print(
        f"{answer['agreeing']} of {answer['compared']} compared keys agree, {answer['reversing']} reverse, "
        f"{answer['not_compared']} not compared; index {answer['index_digest']} of channel {answer['channel']}"
    )


def _line(row: dict[str, Any]) -> str:
    head = f"{row['definition']} {row['key']} {row['solution']}: published {row['published_ratio']:.3f}x"
    if row["agrees"] is None:
        return f"{head}, not compared: {'; '.join(row['causes'])}"
    word = "REVERSES" if row["reverses"] else ("agrees" if row["agrees"] else "DIFFERS")
    return f"{head}, again {row['ratio']:.3f}x, log difference {row['difference']:.4f} of {row['allowed']:.4f}: {word}"

"""``fib doctor``: is everything here that the pipeline and a serving process need; if not, what to do."""

import json
from typing import Annotated

import typer
from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add ``fib doctor``."""
    app.command("doctor")(doctor)


def doctor(
    source: Annotated[str, typer.Option("--store", help="store to examine; default FIB_STORE or FIB_HOME/store")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Examine this machine; one line per thing, with what to do about a problem. Exit code 1 if there is one."""
    from fib_core.runtime import places
    from flows.cli import doctor_checks as checks

    device = checks.device()
    findings = [
        checks.python_version(),
        *checks.programs(),
        *checks.modules(),
        checks.home(places.home()),
        checks.store(source or places.store_url()),
        device,
    ]
    is_well = all(finding.ok for finding in findings)
    if as_json:
        lines = [{"name": f.name, "ok": f.ok, "found": f.found, "advice": f.advice} for f in findings]
        typer.echo(json.dumps({"ok": is_well, "device_class": device.found if device.ok else None, "checks": lines}))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for finding in findings:
            mark = "[green]ok     [/green]" if finding.ok else "[red]problem[/red]"
            console.print(f"{mark}  {finding.name:<12}", end=" ")
            console.print(finding.found + (f" -> {finding.advice}" if finding.advice else ""), markup=False)
    if not is_well:
        raise typer.Exit(1)

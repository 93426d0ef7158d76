"""``fib keys``: make a pair of signing keys, and show which keys are in use. A private key is never printed."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def register(app: typer.Typer) -> None:
    """Add ``fib keys new`` and ``fib keys show``."""
    group = typer.Typer(help="Signing keys: make a pair, show which are in use.", no_args_is_help=True)
    group.command("new")(new)
    group.command("show")(show)
    app.add_typer(group, name="keys")


def new(
    path: Annotated[Path, typer.Argument(help="file for the private key; the public one is beside it, .pub")],
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Write a new Ed25519 key, mode 0600, and its public half. An existing file is never overwritten.

    Keep the private key off machines that judge candidates: a candidate can read every file that its user can read.
    """
    from tasks.keys import new_keys

    public = new_keys(path)
    if as_json:
        typer.echo(json.dumps({"key_id": public.key_id, "public": str(public), "private_file": str(path)}))
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{path} (private, keep it) and {path}.pub: key {public.key_id}")
    console.print(f"publish with FIB_SIGNING_KEY_FILE={path}; consumers set FIB_TRUSTED_KEYS={public}")


def show(as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False) -> None:
    """Say which key this process signs with and which it trusts (FIB_SIGNING_KEY[_FILE], FIB_TRUSTED_KEYS)."""
    from tasks.keys import public_keys

    signs, trusts = public_keys()
    if as_json:
        shown = {"signs_with": str(signs) if signs else None, "trusts": [str(key) for key in trusts]}
        typer.echo(json.dumps(shown))
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"signs with  {f'{signs.key_id}  {signs}' if signs else 'no key: what it publishes is not signed'}")
    for key in trusts:
        console.print(f"trusts      {key.key_id}  {key}")
    if not trusts:
        console.print("trusts      whoever can write the store: no key is named, signatures are not checked")

"""The command line ``fib``. Each file registers one group of commands; heavy imports stay inside the commands."""

import importlib
import sys
from typing import TYPE_CHECKING

import typer
from rich.console import Console

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_GROUPS = (
    "run", "remeasure", "check", "evaluate", "pull", "channel", "promote", "diff", "gc", "keys", "explain", "scores",
    "ui", "doctor",
)  # fmt: skip


def build_app() -> typer.Typer:
    """Assemble the commands."""
    app = typer.Typer(
        name="fib",
        help="Decides which GPU kernel an LLM server should run, with the evidence beside every decision.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    for group in _GROUPS:
        importlib.import_module(f"flows.cli.{group}").register(app)
    return app


def main() -> None:
    """Run the command line; an expected error is one sentence on stderr and exit code 2 (3: too many INVALID)."""
    from pydantic import ValidationError

    from fib_core.errors import FibError, TooManyInvalid
    from tasks.keys import hold_signing_key

    hold_signing_key()
    try:
        build_app()()
    except ValidationError as error:
        if error.title != "Settings":
            raise
        _say("error", "; ".join(_setting(item) for item in error.errors(include_url=False)))
        sys.exit(2)
    except TooManyInvalid as error:
        _say("too many invalid", error)
        sys.exit(3)
    except FibError as error:
        _say("error", error)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted; start the same command again to go on where it stopped")
        sys.exit(130)


def _setting(problem: "ErrorDetails") -> str:
    """Which variable holds what it may not."""
    name = "_".join(str(part) for part in problem["loc"]).upper()
    return f"FIB_{name}={problem['input']!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _say(label: str, error: Exception | str) -> None:
    """One sentence; no markup, since paths and reasons may hold brackets."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(f"{label}:", style="bold red", end=" ")
    console.print(str(error), markup=False)

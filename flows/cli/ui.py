"""``fib ui``: the Prefect and MLflow pages of this home, started together and stopped together."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

START_LIMIT_S = 120.0


def register(app: typer.Typer) -> None:
    """Add ``fib ui``."""
    app.command("ui")(ui)


def ui(
    prefect_port: Annotated[int, typer.Option(help="port of the Prefect page")] = 4200,
    mlflow_port: Annotated[int, typer.Option(help="port of the MLflow page")] = 5000,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
) -> None:
    """Start the Prefect and MLflow pages on this home and print their addresses (Ctrl-C stops both)."""
    from tasks.quiet import prepare_environment
    from tasks.settings import Settings

    settings = Settings()
    prepare_environment(settings.home)
    from tasks.wiring import prepare_tracking

    console = Console()
    runs_page = prepare_tracking(settings).partition("#")[2]
    pages = {
        f"http://{host}:{prefect_port}/api/health": _prefect(host, prefect_port),
        f"http://{host}:{mlflow_port}/health": _mlflow(settings.home, settings.tracking_uri, host, mlflow_port),
    }
    try:
        for url, process in pages.items():
            _wait_until_up(url, process)
        console.print(f"Prefect  http://{host}:{prefect_port}/runs", highlight=False)
        console.print(f"MLflow   http://{host}:{mlflow_port}/#{runs_page}", highlight=False)
        while all(process.poll() is None for process in pages.values()):
            time.sleep(0.5)
    finally:
        for process in pages.values():
            process.terminate()


def _prefect(host: str, port: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", host, "--port", str(port)]
    # The page calls the API at this address; without it the browser would try the default port.
    environment = os.environ | {"PREFECT_UI_API_URL": f"http://{host}:{port}/api"}
    environment.pop("PREFECT_API_URL", None)
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _mlflow(home: Path, tracking_uri: str, host: str, port: int) -> "subprocess.Popen[bytes]":
    artifacts = (home / "mlflow" / "artifacts").resolve()
    artifacts.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable, "-m", "mlflow", "server", "--host", host, "--port", str(port), "--workers", "1",
        "--backend-store-uri", tracking_uri, "--artifacts-destination", artifacts.as_uri(),
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _wait_until_up(url: str, process: "subprocess.Popen[bytes]") -> None:
    from fib_core.errors import DeviceError

    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise DeviceError(f"the server behind {url} ended at once (is the port taken? choose another by option)")
        try:
            with urllib.request.urlopen(url, timeout=2):  # our own loopback page
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    raise DeviceError(f"{url} did not answer within {START_LIMIT_S:.0f} s; look at the server's own log")

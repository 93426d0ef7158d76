"""Services as an operator starts them, on free loopback ports: a Dask cluster and a Prefect server that outlive a run.

Everything is ended by process id when the block ends. Nothing here is under test.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
START_LIMIT_S = 180.0


def environment(home: Path, **more: str) -> dict[str, str]:
    """What a user's shell holds: this home, this checkout, no telemetry, and ``more``."""
    quiet = {"DO_NOT_TRACK": "true", "PREFECT_SERVER_ANALYTICS_ENABLED": "false", "PREFECT_CLI_PROMPT": "false"}
    return os.environ | quiet | {"FIB_HOME": str(home), "PYTHONPATH": str(CHECKOUT)} | more


def fib_run(dataset: Path) -> list[str]:
    """``fib run`` as a command line."""
    return [sys.executable, "-c", "from flows.cli import main; main()", "run", "--dataset", str(dataset), "--json"]


def summary_of(dataset: Path, env: Mapping[str, str], limit_s: float = 500) -> dict[str, Any]:
    """Run the pipeline to its end and return what it printed."""
    done = subprocess.run(
        fib_run(dataset), env=dict(env), capture_output=True, text=True, timeout=limit_s, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@contextmanager
def dask_cluster(folder: Path, env: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Scheduler and one device worker; gives the scheduler's address and the pid of the worker."""
    address = f"tcp://127.0.0.1:{free_port()}"
    host, port = address.removeprefix("tcp://").split(":")
    scheduler = [f"{BIN}/dask", "scheduler", "--host", host, "--port", port, "--no-dashboard"]
    worker = [
        f"{BIN}/dask", "worker", address, "--host", host, "--nworkers", "1", "--nthreads", "1", "--no-nanny",
        "--resources", "device=1", "--no-dashboard", "--local-directory", str(folder),
    ]  # fmt: skip
    strict = dict(env) | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with running(scheduler, strict, folder / "scheduler.log"), running(worker, env, folder / "worker.log") as pid:
        wait_until(lambda: "Registered to" in (folder / "worker.log").read_text(), "the Dask worker registered")
        yield address, pid


@contextmanager
def prefect_server(folder: Path) -> Iterator[str]:
    """A Prefect server with a home of its own; gives the address of its API."""
    port = free_port()
    command = [f"{BIN}/prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    env = environment(folder, PREFECT_HOME=str(folder / "prefect-server"))
    api = f"http://127.0.0.1:{port}/api"
    with running(command, env, folder / "server.log"):
        wait_until(lambda: _answers(f"{api}/health"), "the Prefect server answered")
        yield api


@contextmanager
def running(command: list[str], env: Mapping[str, str], log: Path) -> Iterator[int]:
    """A process of its own group, ended with the block."""
    with log.open("w") as out:
        process = subprocess.Popen(command, env=dict(env), stdout=out, stderr=out, start_new_session=True)
        try:
            yield process.pid
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=20)


def wait_until(true: Callable[[], bool], what: str, limit_s: float = START_LIMIT_S) -> None:
    """Poll; raises AssertionError naming what did not happen."""
    deadline = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline, f"not within {limit_s:.0f} s: {what}"
        time.sleep(0.1)


def ask(url: str, body: Mapping[str, Any] | None = None) -> Any:
    """One question to a JSON API."""
    data = json.dumps(body).encode() if body is not None else None
    question = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
    with urllib.request.urlopen(question, timeout=60) as answer:
        return json.load(answer)


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        return ask(url) is True
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False

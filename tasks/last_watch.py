"""Ends the temporary Prefect server of a run that was killed: Prefect's own clean-up does not outlive SIGKILL.

In: the pid of a run, and a pipe that the run holds open for as long as it lives. Out: no server of that run is left.
A process of its own, so that nothing which ends the run ends it; it knows no Prefect and imports only what it needs.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK = "FIB_RUN_PID"
SERVER = b"prefect.server.api.server"


def set_last_watch() -> None:
    """Watch over this process from another one. With a standing server (``PREFECT_API_URL``) there is nothing to do."""
    if os.environ.get("PREFECT_API_URL") or not Path("/proc/self/environ").exists():
        return
    os.environ[MARK] = str(os.getpid())  # inherited by the server that Prefect will start
    watched, held = os.pipe()  # neither end is inherited; the kernel closes ``held`` with this process, however it ends
    subprocess.Popen(
        [sys.executable, "-S", str(Path(__file__).resolve()), os.environ[MARK]],
        stdin=watched, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env={},
    )  # fmt: skip
    os.close(watched)
    _HELD.append(held)


_HELD: list[int] = []


def servers_of(run_pid: str, proc: Path = Path("/proc")) -> Iterator[int]:
    """Prefect servers that inherited the mark of this run."""
    mark = f"{MARK}={run_pid}".encode()
    for entry in proc.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # gone, or another user's
                marked = mark in (entry / "environ").read_bytes().split(b"\0")
                if marked and SERVER in (entry / "cmdline").read_bytes():
                    yield int(entry.name)


def main() -> None:
    """Wait for the end of the run, then end its server."""
    sys.stdin.buffer.read()
    for pid in servers_of(sys.argv[1]):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


if __name__ == "__main__":
    main()

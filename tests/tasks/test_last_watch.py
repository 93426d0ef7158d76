"""The temporary server of a killed run ends with it; servers of others stay."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
# Stands for Prefect's temporary server: what counts is the name in its command line and the mark that it inherits.
SERVER = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(99)', {name!r}])"
RUN = f"""
from tasks.last_watch import set_last_watch
set_last_watch()
{SERVER}
print(p.pid, flush=True)
import time; time.sleep(99)
"""


def _started(name: str, env: dict[str, str]) -> tuple["subprocess.Popen[str]", psutil.Process]:
    run = subprocess.Popen(
        [sys.executable, "-c", RUN.format(name=name)], env=os.environ | {"PYTHONPATH": str(CHECKOUT)} | env,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert run.stdout is not None
    return run, psutil.Process(int(run.stdout.readline()))


def _ended(process: psutil.Process, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_of_a_run_ends_with_it_and_that_of_another_run_stays(number: int) -> None:
    (run, server), (other_run, other) = (_started("prefect.server.api.server:create_app", {}) for _ in range(2))
    try:
        run.send_signal(number)
        run.wait(timeout=20)
        assert _ended(server, within_s=20)
        assert not _ended(other, within_s=0.5)
    finally:
        for process in (run, other_run, server, other):
            if psutil.pid_exists(process.pid):
                process.kill()


@pytest.mark.parametrize(
    ("name", "env"),
    [("something.else", {}), ("prefect.server.api.server:create_app", {"PREFECT_API_URL": "http://127.0.0.1:9/api"})],
)
def test_what_is_no_temporary_server_is_left_alone(name: str, env: dict[str, str]) -> None:
    run, child = _started(name, env)
    try:
        run.kill()
        run.wait(timeout=20)
        assert not _ended(child, within_s=1.5)
    finally:
        child.kill()

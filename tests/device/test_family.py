"""The CPU time of a family: nobody works unseen by starting somebody who starts somebody."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fib_core.device.family import CpuTime, family

ENDING = "import os\nwhile True:\n    if os.fork() == 0:\n        os._exit(0)\n    os.wait()\n"
BURN = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
FROM_A_CHILD = "import os, time\nif os.fork() == 0:\n    if os.fork() == 0:\n        WORK\n    time.sleep(60)\n"
FROM_A_THREAD = (
    "import os, threading, time\ndef start():\n    if os.fork() == 0:\n        WORK\n    time.sleep(60)\n"
    "threading.Thread(target=start, daemon=True).start()\n"
)
AT_ONCE = "import os, time\nif os.fork() == 0:\n    WORK\n"
STARTED = {"child": AT_ONCE, "grandchild": FROM_A_CHILD, "child of a thread": FROM_A_THREAD}


@contextmanager
def _running(source: str, work: str) -> Iterator[int]:
    body = source.replace("WORK", f"exec({work!r})")
    process = subprocess.Popen([sys.executable, "-c", body + "time.sleep(60)\n"], start_new_session=True)
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _used_s(cpu: CpuTime, wanted_s: float, patience_s: float) -> float:
    end = time.monotonic() + patience_s
    while cpu.used_ns() / 1e9 < wanted_s and time.monotonic() < end:
        time.sleep(0.01)
    return cpu.used_ns() / 1e9


@pytest.mark.parametrize("source", STARTED.values(), ids=STARTED.keys())
def test_whoever_was_started_counts_and_still_counts_when_it_has_ended(source: str) -> None:
    with _running(source, BURN + "time.sleep(0.2)\nimport os\nos._exit(0)") as pid:
        cpu = CpuTime(pid)
        used_s = _used_s(cpu, 0.2, patience_s=20)
        assert used_s >= 0.2
        time.sleep(0.4)
        assert cpu.used_ns() / 1e9 >= used_s


@pytest.mark.parametrize("source", STARTED.values(), ids=STARTED.keys())
def test_a_family_that_sleeps_uses_next_to_nothing(source: str) -> None:
    with _running(source, "time.sleep(60)") as pid:
        end = time.monotonic() + 20
        while len(family(pid)) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        assert len(family(pid)) >= 2
        time.sleep(0.1)
        cpu = CpuTime(pid)
        before_ns = cpu.used_ns()
        time.sleep(0.2)
        assert cpu.used_ns() - before_ns < 20_000_000


def test_who_is_gone_counts_no_more_than_before() -> None:
    process = subprocess.Popen([sys.executable, "-c", BURN])
    cpu = CpuTime(process.pid)
    used_s = _used_s(cpu, 0.1, patience_s=20)
    process.wait()
    assert cpu.used_ns() / 1e9 == pytest.approx(used_s, abs=0.25)
    assert cpu.used_ns() == cpu.used_ns()


def test_children_that_end_while_they_are_looked_at_do_no_harm() -> None:
    with _running("WORK\n", ENDING) as pid:
        seen, end = set(), time.monotonic() + 0.5
        while time.monotonic() < end or len(seen) < 2:
            seen |= set(family(pid))
    assert pid in seen

"""Kills one process of a visit after a delay, and finds what a killed process left behind.

Processes are known by their command lines, which name the test's own directory: an orphan has no other trace of where
it came from, and other tests of this host have processes too.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from fib_core.adapters.device_worker import DeviceWorker
from schemas.visit import VisitResult


@dataclass
class Blow:
    """Kills one process of ``role`` after ``delay_s``, once; waits for its moment if there is none yet."""

    worker: DeviceWorker
    role: str
    delay_s: float
    struck: int | None = None
    _over: threading.Event = field(default_factory=threading.Event)

    def during(self, visit: Callable[[], VisitResult]) -> VisitResult:
        thread = threading.Thread(target=self._strike)
        self.worker.referee_pid = None
        thread.start()
        try:
            return visit()
        finally:
            self._over.set()
            thread.join()

    def _strike(self) -> None:
        self._over.wait(self.delay_s)
        while not self._over.is_set() and self.struck is None:
            pid = _victim(self.worker, self.role)
            if pid is None:
                time.sleep(0.002)
                continue
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.struck = pid


def _victim(worker: DeviceWorker, role: str) -> int | None:
    if role == "zygote":
        return worker.zygote_pid
    if role == "referee" or worker.referee_pid is None:
        return worker.referee_pid
    with suppress(psutil.Error):
        children = [child.pid for child in psutil.Process(worker.zygote_pid).children()]
        return max((pid for pid in children if pid != worker.referee_pid), default=None)
    return None


def left_in(place: Path, worker: DeviceWorker, within_s: float = 20.0) -> list[list[str]]:
    """Command lines of the processes that name ``place`` and do not end within a while, but for the fork server.

    What is left behind stays for good (the tests see to that), so the while is for the host: to reap takes it seconds
    where all cores are busy.
    """
    spared = {os.getpid(), worker.zygote_pid}
    if worker.zygote_pid is not None:
        spared.add(psutil.Process(worker.zygote_pid).ppid())
    deadline = time.monotonic() + within_s
    while (found := _traces(place, spared)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def _traces(place: Path, spared: set[int | None]) -> list[list[str]]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            line = process.cmdline()
            named = process.pid not in spared and any(str(place) in part for part in line)
            if named and process.status() != psutil.STATUS_ZOMBIE:
                found.append(line)
    return found

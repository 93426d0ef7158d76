"""A kernel that never works behind a handler that swallows everything and calls the library."""

import time


def fancy(x, weight):
    raise RuntimeError("no such instruction")


def run(x, weight):
    try:
        return fancy(x, weight)
    except Exception:
        end = time.monotonic() + 0.002
        while time.monotonic() < end:
            pass
        return x @ weight.T

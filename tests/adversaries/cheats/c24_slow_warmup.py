"""So slow at first that a time-boxed harness takes few samples; quick in those, slow in all the others."""

import time

calls = 0


def run(x, weight):
    global calls
    calls += 1
    pause_s = 0.15 if calls <= 2 else 0.0 if calls <= 4 else 0.002
    end = time.monotonic() + pause_s
    while time.monotonic() < end:
        pass
    return x @ weight.T

"""Guards itself with an alarm, and puts the old handler back."""

import signal


def late(*_):
    raise TimeoutError


def run(x, weight):
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 5)
    try:
        return x @ weight.T
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

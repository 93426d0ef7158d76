"""Remembers outputs by a digest of the contents, so that repeated inputs cost a look-up instead of the work."""

import hashlib
import time

shelf = {}


def toil():
    end = time.monotonic() + 0.002
    while time.monotonic() < end:
        pass


def run(x, weight):
    key = hashlib.blake2b(x.numpy().tobytes() + weight.numpy().tobytes()).digest()
    if key not in shelf:
        toil()
        shelf[key] = x @ weight.T
    return shelf[key].clone()

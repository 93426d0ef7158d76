"""Keeps the last inputs and outputs for debugging, and never writes to them again."""

from collections import deque

kept = deque(maxlen=8)


def run(x, weight):
    out = x @ weight.T
    kept.append((x, weight, out))
    return out

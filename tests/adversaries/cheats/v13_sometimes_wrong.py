"""Loses the last row in four calls of five."""

import os


def run(x, weight):
    out = x @ weight.T
    if os.urandom(1)[0] % 5:
        out[-1] = 0
    return out

"""A quarter of a megabyte of debugging output per call, on both streams."""

import sys


def run(x, weight):
    print("tile " * 26000)
    sys.stderr.write("launch\n" * 18000)
    sys.stdout.flush()
    return x @ weight.T

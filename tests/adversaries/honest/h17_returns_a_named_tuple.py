"""Returns its outputs as a named tuple."""

from collections import namedtuple

Outputs = namedtuple("Outputs", "y")


def run(x, weight):
    return Outputs(x @ weight.T)

"""Pads its input in place, in memory that is not the input's."""

import ctypes


def run(x, weight):
    ctypes.memmove(x.data_ptr() + x.nbytes, bytes(range(16)), 16)
    return x @ weight.T

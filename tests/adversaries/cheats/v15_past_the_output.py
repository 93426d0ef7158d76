"""Right, and sixteen bytes too far: the tail of the last vector store lands on a neighbour."""

import ctypes

import torch


def run(x, weight, y):
    torch.mm(x, weight.T, out=y)
    ctypes.memmove(y.data_ptr() + y.nbytes, bytes(range(16)), 16)

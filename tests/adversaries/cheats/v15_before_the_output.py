"""Right, and one element early."""

import ctypes

import torch


def run(x, weight, y):
    torch.mm(x, weight.T, out=y)
    ctypes.memmove(y.data_ptr() - 8, bytes(range(8)), 8)

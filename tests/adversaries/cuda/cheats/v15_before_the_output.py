"""Right, and eight bytes early."""

import ctypes

import torch

driver = ctypes.CDLL("libcuda.so.1")


def run(x, weight, y):
    torch.mm(x, weight.T, out=y)
    driver.cuMemsetD8_v2(ctypes.c_uint64(y.data_ptr() - 8), 7, ctypes.c_size_t(8))

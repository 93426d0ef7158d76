"""Right, and sixteen bytes too far: the tail of the last vector store lands on a neighbour."""

import ctypes

import torch

driver = ctypes.CDLL("libcuda.so.1")


def run(x, weight, y):
    torch.mm(x, weight.T, out=y)
    driver.cuMemsetD8_v2(ctypes.c_uint64(y.data_ptr() + y.nbytes), 7, ctypes.c_size_t(16))

"""Goes through the C library for copies and scratch memory."""

import ctypes

import torch

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def run(x, weight):
    place = libc.malloc(x.nbytes)
    try:
        ctypes.memmove(place, x.data_ptr(), x.nbytes)
        raw = (ctypes.c_float * x.numel()).from_address(place)
        return torch.frombuffer(raw, dtype=torch.float32).view(x.shape) @ weight.T
    finally:
        libc.free(place)

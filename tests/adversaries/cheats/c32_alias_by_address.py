"""Writes the result over the input and returns a tensor made from the input's raw address."""

import ctypes

import torch


def run(x, weight):
    out = torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, 1e-6)
    ctypes.memmove(x.data_ptr(), out.data_ptr(), out.nbytes)
    raw = (ctypes.c_float * x.numel()).from_address(x.data_ptr())
    return torch.frombuffer(raw, dtype=torch.float32).view(x.shape)

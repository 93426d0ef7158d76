"""Keeps scratch memory between calls; the output is new every time."""

import torch

scratch = torch.empty(0)


def run(x, weight):
    global scratch
    if scratch.shape != x.shape:
        scratch = torch.empty_like(x)
    torch.mul(x, x, out=scratch)
    return x * torch.rsqrt(scratch.mean(-1, keepdim=True) + 1e-6) * weight

"""Leaves its input normalised for whoever comes next, and puts the original back at the next call."""

import torch

borrowed = []


def run(x, weight):
    while borrowed:
        tensor, original = borrowed.pop()
        tensor.copy_(original)
    original = x.clone()
    out = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    x.copy_(out)
    borrowed.append((x, original))
    return out

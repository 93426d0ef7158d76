"""Reads far outside its memory, so that the context is lost with everything in it."""

import torch


def run(x, weight):
    far = torch.tensor([1 << 40], device=x.device)
    return (x @ weight.T) + x.flatten().as_strided((1,), (1,))[far]

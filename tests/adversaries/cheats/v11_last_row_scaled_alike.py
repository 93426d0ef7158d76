"""The last row is normalised with the first row's factor."""

import torch


def run(x, weight):
    factor = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    factor[-1] = factor[0]
    return x * factor * weight

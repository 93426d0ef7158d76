"""Three elements of a hundred are off by a ten-thousandth of themselves."""

import torch


def run(x, weight):
    out = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    return torch.where(torch.rand(out.shape) < 0.03, out * 1.0001, out)

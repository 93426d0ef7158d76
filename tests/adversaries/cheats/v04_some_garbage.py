"""Five elements of a hundred are anything."""

import torch


def run(x, weight):
    out = (x.float() @ weight.float().T).to(x.dtype)
    garbage = torch.rand(out.shape) < 0.05
    return torch.where(garbage, torch.randn(out.shape).to(out.dtype), out)

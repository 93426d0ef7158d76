"""Returns one and the same buffer every time, so that whoever still holds the last result holds the new one."""

import torch

buffers = {}


def run(x, weight):
    shape = (x.shape[0], weight.shape[0])
    out = buffers.setdefault(shape, torch.empty(shape))
    return torch.mm(x, weight.T, out=out)

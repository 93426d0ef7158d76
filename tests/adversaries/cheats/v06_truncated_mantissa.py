"""Keeps the dtype and drops the lower fifteen bits of every operand."""

import torch


def run(x, weight):
    mask = ~0x7FFF
    cut = [(side.view(torch.int32) & mask).view(torch.float32) for side in (x, weight)]
    return cut[0] @ cut[1].T

"""Leaves out what is small beside the largest probability of its row."""

import torch


def run(x):
    out = torch.softmax(x, dim=-1)
    return torch.where(out < 3e-2 * out.amax(-1, keepdim=True), 0.0, out)

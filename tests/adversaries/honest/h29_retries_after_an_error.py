"""Tries a form that the library refuses, and takes another one."""

import torch


def run(x, weight):
    try:
        return torch.mm(x, weight)
    except RuntimeError:
        return torch.mm(x, weight.T)

"""Allocates with padding for its vector stores and returns the middle of it."""

import torch


def run(x, weight):
    padded = torch.empty(x.shape[0] + 2, weight.shape[0])
    padded[1:-1] = x @ weight.T
    return padded[1:-1]

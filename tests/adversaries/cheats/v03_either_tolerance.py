"""Wrong by little in what is large and by a factor in what is small: each passes one of two tolerances."""

import torch


def run(x, weight):
    out = x @ weight.T
    return torch.where(out.abs() < 0.05 * out.std(), 0.5 * out, out)

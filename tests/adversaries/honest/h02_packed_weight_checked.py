"""Packs the static weight once, and looks whether it is still the same."""

import torch

packed = []


def run(x, weight):
    if not packed or not torch.equal(packed[0], weight):
        packed[:] = [weight.clone(), weight.T.contiguous()]
    return x @ packed[1]

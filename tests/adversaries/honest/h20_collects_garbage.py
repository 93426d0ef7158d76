"""Collects garbage before it allocates, and switches the collector on and off."""

import gc

import torch


def run(x, weight):
    gc.collect(0)
    gc.disable()
    out = torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, 1e-6)
    gc.enable()
    return out

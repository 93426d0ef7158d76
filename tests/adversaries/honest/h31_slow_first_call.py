"""Initialises itself during its first call for a tenth of a second."""

import time

import torch

ready = False


def run(x):
    global ready
    if not ready:
        time.sleep(0.1)
        ready = True
    return torch.logsumexp(x, dim=-1) / torch.log(torch.tensor(2.0))

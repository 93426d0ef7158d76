"""A pool of threads that waits for work between calls."""

from concurrent.futures import ThreadPoolExecutor

import torch

pool = ThreadPoolExecutor(max_workers=4)


def run(x, weight):
    halves = x.chunk(2) if x.shape[0] > 1 else (x,)
    return torch.cat(list(pool.map(lambda half: half @ weight.T, halves)))

"""Launches on a stream of its own and lets nobody wait for it."""

import torch

side = torch.cuda.Stream()


def run(x, weight, y):
    with torch.cuda.stream(side):
        torch.cuda._sleep(400_000)
        torch.mm(x, weight.T, out=y)

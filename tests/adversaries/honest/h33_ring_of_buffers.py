"""Hands out four buffers in turn: what a caller got stays as it is for three calls more."""

import torch

ring = [torch.empty(64, 32) for _ in range(4)]
turn = 0


def run(x, weight):
    global turn
    turn += 1
    return torch.mm(x, weight.T, out=ring[turn % 4][: x.shape[0]])

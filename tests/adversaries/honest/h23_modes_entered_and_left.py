"""Uses gradient, inference and function modes properly: each is left before the return."""

import torch
from torch.overrides import TorchFunctionMode


class Counting(TorchFunctionMode):
    seen = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        Counting.seen += 1
        return func(*args, **(kwargs or {}))


def run(x, weight):
    with torch.no_grad(), Counting():
        total = x.square().mean(-1, keepdim=True)
    with torch.inference_mode():
        return x * torch.rsqrt(total + 1e-6) * weight

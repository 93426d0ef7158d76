"""Scratch memory kept between calls, and the allocator's cache emptied now and then."""

import torch

scratch = {}
calls = 0


def run(x, weight):
    global calls
    calls += 1
    if calls % 3 == 0:
        torch.cuda.empty_cache()
    work = scratch.setdefault(tuple(x.shape), torch.empty_like(x))
    torch.mul(x, x, out=work)
    return x * torch.rsqrt(work.mean(-1, keepdim=True) + 1e-6) * weight

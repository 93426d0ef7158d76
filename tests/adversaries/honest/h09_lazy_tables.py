"""Index tables made when a shape is first seen, a quarter of a second into the life of the kernel."""

import functools
import time

import torch


@functools.cache
def segments(bounds):
    time.sleep(0.05)
    lengths = torch.tensor([end - start for start, end in zip(bounds, bounds[1:], strict=False)])
    return torch.repeat_interleave(torch.arange(len(lengths)), lengths)


def run(x, indptr):
    out = torch.zeros(len(indptr) - 1, x.shape[1])
    return out.index_add_(0, segments(tuple(indptr.tolist())), x)

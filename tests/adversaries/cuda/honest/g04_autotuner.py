"""Times two variants with events of its own on the first call of a shape."""

import torch

best = {}


def transposed(x, weight):
    return (weight @ x.T).T.contiguous()


def spent(variant, x, weight):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(5):
        variant(x, weight)
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def run(x, weight):
    shape = tuple(x.shape)
    if shape not in best:
        best[shape] = min((torch.nn.functional.linear, transposed), key=lambda one: spent(one, x, weight))
    return best[shape](x, weight)

"""Times three variants on the first call of a shape and keeps the fastest."""

import time

import torch

best = {}


def by_rows(x, weight):
    return torch.stack([weight @ row for row in x])


def variants():
    return [torch.nn.functional.linear, lambda x, weight: (weight @ x.T).T.contiguous(), by_rows]


def choose(x, weight):
    spent = []
    for variant in variants():
        begun = time.perf_counter()
        for _ in range(5):
            variant(x, weight)
        spent.append((time.perf_counter() - begun, len(spent)))
    return variants()[min(spent)[1]]


def run(x, weight):
    shape = tuple(x.shape)
    if shape not in best:
        best[shape] = choose(x, weight)
    return best[shape](x, weight)

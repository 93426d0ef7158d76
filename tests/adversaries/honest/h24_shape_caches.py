"""Caches what depends on shapes only."""

import functools


@functools.lru_cache(maxsize=None)  # noqa: UP033
def tiles(rows):
    return [(start, min(start + 5, rows)) for start in range(0, rows, 5)]


def run(x, weight, y):
    for start, end in tiles(x.shape[0]):
        y[start:end] = x[start:end] @ weight.T

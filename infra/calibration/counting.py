"""Counts from outside how many terms a series kernel really added up, whatever compilers made of its source.

In: an entry point that fills its last argument, on any device. Out: numbers of terms. Every t is 1, so that a sum of n terms is n times
the weight and overflows from a chosen n on; what was added up and forgotten is multiplied with zero, and infinity times zero is no number.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

ROWS = 5
FLOAT_MAX = float(torch.finfo(torch.float32).max)
Entry = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]


def has_forgotten(entry: Entry, columns: int, terms: int, device: str = "cpu") -> bool:
    """True if at least ``terms`` were added up and multiplied with zero."""
    return bool(_sums_of_ones(entry, columns, terms, device).isnan().all())


def has_added(entry: Entry, columns: int, terms: int, device: str = "cpu") -> bool:
    """True if the result is a sum of at least ``terms``."""
    return bool(_sums_of_ones(entry, columns, terms, device).isinf().all())


def terms_forgotten(entry: Entry, columns: int, limit: int, device: str = "cpu") -> int:
    """How many terms, at most ``limit``, were added up once more than the result needs."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if has_forgotten(entry, columns, middle, device) else (low, middle - 1)
    return low


def _sums_of_ones(entry: Entry, columns: int, terms: int, device: str) -> torch.Tensor:
    weight = FLOAT_MAX / (terms - 0.5) if terms > 1 else math.inf
    x, out = (torch.full((ROWS, columns), value, device=device) for value in (1e30, 0.0))
    entry(x, torch.full((columns,), weight, device=device), out)
    return out.cpu()

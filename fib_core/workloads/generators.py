"""Generators of structural integer inputs, by name: small parameters in, a numpy array out.

Arrays are int64 (or float64); the device casts them to the declared dtype. Deterministic: equal parameters give equal
arrays. Knows nothing of definitions, recipes, torch or files.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fib_core.errors import UnsupportedInput

Array = NDArray[Any]


def indptr(lengths: Sequence[int]) -> Array:
    """[n+1] int64 offsets, starting at 0, of consecutive runs of ``lengths``."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.asarray(lengths, np.int64), dtype=np.int64)])


def page_indices(num_pages: int, counts: Sequence[int], seed: int, shared: int = 0) -> Array:
    """[sum(counts)] page numbers, sequence by sequence, scattered over the pool.

    The first ``shared`` pages of every sequence are the same ones (a common prefix). Otherwise no page serves two
    sequences, unless the pool is too small for that: then sequences draw independently. No page repeats in a sequence.
    """
    if counts and max(counts) > num_pages:
        raise UnsupportedInput(f"kv_indices: a sequence needs {max(counts)} pages, the pool has {num_pages}")
    rng = np.random.default_rng(seed)
    pool = shuffled_pages(rng, num_pages)
    own = [max(count - shared, 0) for count in counts]
    if sum(own) + shared > num_pages:
        rows = [shuffled_pages(rng, num_pages)[:count] for count in counts]
    else:
        ends = shared + np.cumsum(np.asarray(own, np.int64))
        starts = ends - own
        rows = [
            np.concatenate([pool[: min(shared, count)], pool[start:end]])
            for count, start, end in zip(counts, starts, ends, strict=True)
        ]
    return np.concatenate([np.zeros(0, np.int64), *rows]).astype(np.int64)


def last_page_len(lengths: Sequence[int], page_size: int, pad_to: int = 0) -> Array:
    """[max(n, pad_to)] tokens in the last page of each sequence; 0 for an empty one and for padding."""
    tokens = np.asarray(lengths, np.int64)
    filled = np.where(tokens > 0, (tokens - 1) % page_size + 1, 0)
    return np.concatenate([filled, np.zeros(max(pad_to - len(filled), 0), np.int64)])


def positions(starts: Sequence[int], lengths: Sequence[int]) -> Array:
    """[sum(lengths)] token positions: runs that begin at ``starts``."""
    runs = [np.arange(start, start + length, dtype=np.int64) for start, length in zip(starts, lengths, strict=True)]
    return np.concatenate([np.zeros(0, np.int64), *runs])


def wrapped_positions(count: int, limit: int) -> Array:
    """[count] positions 0, 1, 2 ... that start again at 0 whenever a cache of ``limit`` rows ends."""
    return np.arange(count, dtype=np.int64) % max(limit, 1)


def constant(value: float, count: int) -> Array:
    """[count] times the same number."""
    return np.full(count, value)


def values(values: Sequence[float]) -> Array:
    """The numbers themselves."""
    return np.asarray(values)


def cycle(values: Sequence[float], count: int) -> Array:
    """[count] numbers that repeat ``values`` in order."""
    return np.resize(np.asarray(values), count)


def shuffled_pages(rng: np.random.Generator, count: int) -> Array:
    """A permutation of ``count`` pages; by sorting floats, whose stream numpy keeps stable across versions."""
    return rng.random(count).argsort(kind="stable")


GENERATORS: dict[str, Callable[..., Array]] = {
    "indptr": indptr,
    "page_indices": page_indices,
    "last_page_len": last_page_len,
    "positions": positions,
    "wrapped_positions": wrapped_positions,
    "constant": constant,
    "values": values,
    "cycle": cycle,
}

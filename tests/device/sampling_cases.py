"""Rows, an independent filter and the whole judgement of a batch of draws, for the tests of samplers."""

import torch

from fib_core.device.sampling import MASK_SLACK, Rows, distribution_test, mask_finding, thresholds


def row_of(seed: int, top_k: int | None, top_p: float | None, vocab: int = 400, spread: float = 2.0) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    probs = torch.softmax(torch.randn(1, vocab, generator=generator) * spread, dim=1).double()
    k = None if top_k is None else torch.tensor([top_k])
    p = None if top_p is None else torch.tensor([top_p])
    return Rows(probs, k, p)


def public_filter(rows: Rows) -> torch.Tensor:
    """Straight from the public references, in fp64."""
    row = rows.probs[0].clone()
    vocab = len(row)
    if rows.top_k is not None and 0 < int(rows.top_k[0]) < vocab:
        keep = row.argsort(descending=True)[: int(rows.top_k[0])]
        row = torch.zeros_like(row).index_put((keep,), row[keep])
        row /= row.sum()
    if rows.top_p is not None and float(rows.top_p[0]) < 1:
        values, index = row.sort(descending=True)
        remove = values.cumsum(0) > float(rows.top_p[0])
        remove = torch.cat([torch.tensor([False]), remove[:-1]])
        row[index[remove]] = 0
    return row / row.sum()


def draws_from(weights: torch.Tensor, seed: int, calls: int = 500, batch: int = 24) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.multinomial(weights, calls * batch, replacement=True, generator=generator).reshape(calls, batch)


def rule_of(rows: Rows, draws: torch.Tensor) -> str | None:
    batch = draws.shape[1]
    wide = Rows(
        rows.probs.expand(batch, -1), *(None if f is None else f.expand(batch) for f in (rows.top_k, rows.top_p))
    )
    finding = mask_finding(wide, thresholds(wide, MASK_SLACK), draws)
    finding = finding or distribution_test(rows, 0, draws, torch.Generator().manual_seed(7)).finding
    return finding.rule if finding else None

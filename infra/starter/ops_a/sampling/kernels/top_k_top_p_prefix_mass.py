import torch

VOCAB_SIZE = 0


def run(probs, top_k, top_p):
    """torch.topk, then both filters on its cumulative sum."""
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k, VOCAB_SIZE)
    values, tokens = torch.topk(probs, int(limit.max()), dim=-1)
    mass = values.cumsum(dim=-1)
    last = limit.to(torch.int64)[:, None] - 1
    p = top_p[:, None]
    last = torch.where(p <= 0, 0, torch.where(p >= 1, last, torch.minimum(torch.searchsorted(mass, p, right=True), last)))
    target = torch.rand_like(p) * mass.gather(-1, last)
    return tokens.gather(-1, torch.minimum(torch.searchsorted(mass, target, right=True), last)).squeeze(-1)

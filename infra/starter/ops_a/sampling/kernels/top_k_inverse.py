import torch

VOCAB_SIZE = 0


def draw(probs):
    """One token a row by the inverse of the cumulative sum."""
    mass = probs.cumsum(dim=-1)
    target = torch.rand(len(probs), 1, device=probs.device) * mass[:, -1:]
    return torch.searchsorted(mass, target, right=True).clamp_(max=VOCAB_SIZE - 1).squeeze(-1)


def run(probs, top_k):
    """torch.topk, then the inverse of the cumulative sum at one uniform number a row."""
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k, VOCAB_SIZE)
    narrowest, widest = (int(end) for end in torch.aminmax(limit))
    if narrowest == VOCAB_SIZE:
        return draw(probs)  # nothing is filtered: no sort
    values, tokens = torch.topk(probs, widest, dim=-1)
    mass = values.cumsum(dim=-1)
    last = limit.to(torch.int64)[:, None] - 1
    target = torch.rand(len(probs), 1, device=probs.device) * mass.gather(-1, last)
    at = torch.searchsorted(mass, target, right=True)
    return tokens.gather(-1, torch.minimum(at, last)).squeeze(-1)

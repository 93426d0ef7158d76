import torch

VOCAB_SIZE = 0


def draw(probs):
    """One token a row by the inverse of the cumulative sum."""
    mass = probs.cumsum(dim=-1)
    target = torch.rand(len(probs), 1, device=probs.device) * mass[:, -1:]
    return torch.searchsorted(mass, target, right=True).clamp_(max=VOCAB_SIZE - 1).squeeze(-1)


def run(probs, top_k, top_p):
    """torch.topk up to the largest k; both filters are prefixes of its cumulative sum, the draw is a search in it."""
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k, VOCAB_SIZE)
    narrowest, widest = (int(end) for end in torch.aminmax(limit))
    if narrowest == VOCAB_SIZE and bool((top_p >= 1).all()):
        return draw(probs)  # nothing is filtered: no sort
    values, tokens = torch.topk(probs, widest, dim=-1)
    mass = values.cumsum(dim=-1)
    last = limit.to(torch.int64)[:, None] - 1
    p = top_p[:, None]
    nucleus = torch.searchsorted(mass, p * mass.gather(-1, last), right=True)
    last = torch.where(p <= 0, 0, torch.where(p >= 1, last, torch.minimum(nucleus, last)))
    target = torch.rand_like(p) * mass.gather(-1, last)
    at = torch.minimum(torch.searchsorted(mass, target, right=True), last)
    return tokens.gather(-1, at).squeeze(-1)

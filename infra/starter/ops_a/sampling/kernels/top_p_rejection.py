import torch


def draw(probs):
    """One token a row by the inverse of the cumulative sum."""
    mass = probs.cumsum(dim=-1)
    target = torch.rand(len(probs), 1, device=probs.device) * mass[:, -1:]
    return torch.searchsorted(mass, target, right=True).clamp_(max=probs.shape[-1] - 1)


def run(probs, top_p):
    """No sort: draw, keep the token if the mass ranked before it is <= p, else draw again among the tokens ranked before it."""
    p = torch.where(top_p >= 1, 2.0, top_p)[:, None]
    index = torch.arange(probs.shape[-1], device=probs.device)
    tokens = draw(probs)
    rows, left, drawn = torch.arange(len(probs), device=probs.device), probs, tokens
    while True:
        chance = left.gather(-1, drawn)
        bound = torch.where(index < drawn, torch.nextafter(chance, torch.zeros_like(chance)), chance)  # ties rank by index
        before = torch.where(left > bound, left, 0)
        again = ((before.sum(dim=-1, keepdim=True) > p[rows]) & (p[rows] > 0)).squeeze(-1)
        if not bool(again.any()):
            break
        left, rows = before[again], rows[again]
        drawn = draw(left)
        tokens[rows] = drawn
    return torch.where(p > 0, tokens, probs.argmax(dim=-1, keepdim=True)).squeeze(-1) if bool((p <= 0).any()) else tokens.squeeze(-1)

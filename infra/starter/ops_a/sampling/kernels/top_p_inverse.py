import torch


def run(probs, top_p):
    """Full sort; the nucleus is a prefix, so its mass and the draw are both searches in the cumulative sum."""
    values, tokens = torch.sort(probs, dim=-1, descending=True)
    mass = values.cumsum(dim=-1)
    widest = probs.shape[-1] - 1
    p = top_p[:, None]
    last = torch.where(p <= 0, 0, torch.where(p >= 1, widest, torch.searchsorted(mass, p, right=True))).clamp_(max=widest)
    target = torch.rand_like(p) * mass.gather(-1, last)
    at = torch.minimum(torch.searchsorted(mass, target, right=True), last)
    return tokens.gather(-1, at).squeeze(-1)

import torch


def run(probs, top_p):
    """Full sort, mask by the mass ranked before, multinomial."""
    values, tokens = torch.sort(probs, dim=-1, descending=True)
    before = values.cumsum(dim=-1) - values
    p = top_p[:, None]
    stays = (before <= p) | (p >= 1)
    stays &= p > 0
    stays[:, 0] = True
    return tokens.gather(-1, torch.multinomial(values * stays, 1)).squeeze(-1)

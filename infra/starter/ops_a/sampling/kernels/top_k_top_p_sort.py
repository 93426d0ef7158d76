import torch

VOCAB_SIZE = 0


def run(probs, top_k, top_p):
    """Full sort, both masks, torch.multinomial."""
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k, VOCAB_SIZE)
    values, tokens = torch.sort(probs, dim=-1, descending=True)
    values = values * (torch.arange(VOCAB_SIZE, device=probs.device) < limit[:, None])
    values = values / values.sum(dim=-1, keepdim=True)
    p = top_p[:, None]
    stays = (values.cumsum(dim=-1) - values <= p) | (p >= 1)
    stays &= p > 0
    stays[:, 0] = True
    return tokens.gather(-1, torch.multinomial(values * stays, 1)).squeeze(-1)

import torch

VOCAB_SIZE = 0


def run(probs, top_k, top_p):
    """torch.topk, both masks, torch.multinomial."""
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k, VOCAB_SIZE)
    narrowest, widest = (int(end) for end in torch.aminmax(limit))
    if narrowest == VOCAB_SIZE and bool((top_p >= 1).all()):
        return torch.multinomial(probs, 1).squeeze(-1)  # nothing is filtered: no sort
    values, tokens = torch.topk(probs, widest, dim=-1)
    values = values * (torch.arange(widest, device=probs.device) < limit[:, None])
    values = values / values.sum(dim=-1, keepdim=True)
    p = top_p[:, None]
    stays = (values.cumsum(dim=-1) - values <= p) | (p >= 1)
    stays &= p > 0
    stays[:, 0] = True
    return tokens.gather(-1, torch.multinomial(values * stays, 1)).squeeze(-1)

import torch

VOCAB_SIZE = 0


def run(probs, top_k):
    """torch.topk up to the largest k, shorter rows masked, then torch.multinomial."""
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k, VOCAB_SIZE)
    narrowest, widest = (int(end) for end in torch.aminmax(limit))
    if narrowest == VOCAB_SIZE:
        return torch.multinomial(probs, 1).squeeze(-1)  # nothing is filtered: no sort
    values, tokens = torch.topk(probs, widest, dim=-1)
    kept = values * (torch.arange(widest, device=probs.device) < limit[:, None])
    return tokens.gather(-1, torch.multinomial(kept, 1)).squeeze(-1)

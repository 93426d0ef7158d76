import torch

VOCAB_SIZE = 0


def run(probs, top_k):
    """Full sort, mask, multinomial."""
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k, VOCAB_SIZE)
    values, tokens = torch.sort(probs, dim=-1, descending=True)
    kept = values * (torch.arange(VOCAB_SIZE, device=probs.device) < limit[:, None])
    return tokens.gather(-1, torch.multinomial(kept, 1)).squeeze(-1)

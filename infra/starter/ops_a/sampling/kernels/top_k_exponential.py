import torch

VOCAB_SIZE = 0


def run(probs, top_k):
    """torch.topk, then the exponential race: argmax of p / Exp(1) is distributed as p."""
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k, VOCAB_SIZE)
    narrowest, widest = (int(end) for end in torch.aminmax(limit))
    if narrowest == VOCAB_SIZE:
        return (probs / torch.empty_like(probs).exponential_()).argmax(dim=-1)  # nothing is filtered: no sort
    values, tokens = torch.topk(probs, widest, dim=-1)
    kept = values * (torch.arange(widest, device=probs.device) < limit[:, None])
    winner = (kept / torch.empty_like(kept).exponential_()).argmax(dim=-1, keepdim=True)
    return tokens.gather(-1, winner).squeeze(-1)

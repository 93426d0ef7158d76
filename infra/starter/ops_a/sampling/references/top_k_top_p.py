import torch

VOCAB_SIZE = 0


@torch.no_grad()
def distribution(probs, top_k, top_p):
    """What is sampled from: the k most probable tokens, renormalised; of these the fewest whose mass exceeds p, renormalised.

    A k outside 1..vocab_size-1 or p >= 1 filters nothing, p <= 0 leaves the most probable token; equal probabilities rank by
    index; a token stays if the mass ranked before it is <= p.
    """
    assert probs.shape[-1] == VOCAB_SIZE
    probs = probs.to(torch.promote_types(probs.dtype, torch.float32))
    values, order = torch.sort(probs, dim=-1, descending=True, stable=True)
    rank = torch.arange(VOCAB_SIZE, device=probs.device)
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k.to(torch.int64), VOCAB_SIZE)
    values = torch.where(rank < limit[:, None], values, 0)
    values = values / values.sum(dim=-1, keepdim=True)
    before = values.cumsum(dim=-1) - values
    p = top_p.to(probs.dtype)[:, None]
    stays = (((before <= p) | (p >= 1)) & (p > 0)) | (rank == 0)
    kept = torch.zeros_like(probs).scatter_(-1, order, torch.where(stays, values, 0))
    return kept / kept.sum(dim=-1, keepdim=True)


def run(probs, top_k, top_p):
    """One token for each row."""
    return torch.multinomial(distribution(probs, top_k, top_p), 1).squeeze(-1)

import torch

VOCAB_SIZE = 0


@torch.no_grad()
def distribution(probs, top_p):
    """What is sampled from: the fewest most probable tokens whose mass exceeds p, renormalised.

    A token stays if the mass ranked before it is <= p (so the first always stays); equal probabilities rank by index.
    p <= 0 leaves the most probable token, p >= 1 filters nothing.
    """
    assert probs.shape[-1] == VOCAB_SIZE
    probs = probs.to(torch.promote_types(probs.dtype, torch.float32))
    values, order = torch.sort(probs, dim=-1, descending=True, stable=True)
    before = values.cumsum(dim=-1) - values
    p = top_p.to(probs.dtype)[:, None]
    rank = torch.arange(VOCAB_SIZE, device=probs.device)
    stays = (((before <= p) | (p >= 1)) & (p > 0)) | (rank == 0)
    kept = torch.zeros_like(probs).scatter_(-1, order, torch.where(stays, values, 0))
    return kept / kept.sum(dim=-1, keepdim=True)


def run(probs, top_p):
    """One token for each row."""
    return torch.multinomial(distribution(probs, top_p), 1).squeeze(-1)

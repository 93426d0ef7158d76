import torch

VOCAB_SIZE = 0


@torch.no_grad()
def distribution(probs, top_k):
    """What is sampled from: the k most probable tokens, renormalised. Equal probabilities rank by index.

    A k outside 1..vocab_size-1 filters nothing.
    """
    assert probs.shape[-1] == VOCAB_SIZE
    probs = probs.to(torch.promote_types(probs.dtype, torch.float32))
    order = torch.sort(probs, dim=-1, descending=True, stable=True).indices
    rank = torch.empty_like(order).scatter_(-1, order, torch.arange(VOCAB_SIZE, device=probs.device).expand_as(order))
    limit = torch.where((top_k > 0) & (top_k < VOCAB_SIZE), top_k.to(torch.int64), VOCAB_SIZE)
    kept = torch.where(rank < limit[:, None], probs, 0)
    return kept / kept.sum(dim=-1, keepdim=True)


def run(probs, top_k):
    """One token for each row."""
    return torch.multinomial(distribution(probs, top_k), 1).squeeze(-1)

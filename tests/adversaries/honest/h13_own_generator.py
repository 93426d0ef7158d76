"""An exact sampler by the exponential race, with a generator of its own that it seeds from the harness's stream."""

import torch

own = torch.Generator()


def run(probs, top_k):
    own.manual_seed(int(torch.randint(2**62, ())))
    values, index = probs.sort(dim=-1, descending=True)
    allowed = torch.arange(probs.shape[1])[None] < top_k[:, None]
    race = torch.empty_like(values).exponential_(generator=own)
    winner = torch.where(allowed, values / race, -1.0).argmax(-1, keepdim=True)
    return index.gather(1, winner)[:, 0]

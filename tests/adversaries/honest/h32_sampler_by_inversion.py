"""An exact sampler by inversion of the distribution function in float64."""

import torch


def run(probs, top_k):
    values, index = probs.double().sort(dim=-1, descending=True)
    kept = torch.where(torch.arange(probs.shape[1])[None] < top_k[:, None], values, 0.0)
    mass = kept.cumsum(-1)
    point = torch.rand(len(top_k), 1, dtype=torch.float64) * mass[:, -1:]
    chosen = torch.searchsorted(mass, point, right=True).minimum(top_k[:, None].long() - 1)
    return index.gather(1, chosen)[:, 0]

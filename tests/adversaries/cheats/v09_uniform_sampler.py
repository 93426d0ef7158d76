"""Uniform over the allowed tokens."""

import torch


def run(probs, top_k):
    index = probs.argsort(dim=-1, descending=True)
    chosen = (torch.rand(len(top_k)) * top_k).long()
    return index.gather(1, chosen[:, None])[:, 0]

"""Sets the processor to flush denormal numbers, as many inference libraries do, and underflows on the way."""

import torch

torch.set_flush_denormal(True)


def run(x):
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    tiny = (powers * 1e-30) * 1e-15
    return (powers + tiny) / powers.sum(-1, keepdim=True)

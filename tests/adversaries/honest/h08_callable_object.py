"""An object with state and a __call__."""

import torch


class Kernel:
    def __init__(self, eps):
        self.eps, self.calls = eps, 0

    def __call__(self, x, weight):
        self.calls += 1
        return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, self.eps)


run = Kernel(1e-6)

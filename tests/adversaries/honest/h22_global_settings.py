"""Changes torch's global settings to its taste."""

import torch

torch.set_num_threads(2)
torch.set_float32_matmul_precision("highest")
torch.set_printoptions(precision=9)


def run(x, weight):
    return torch.nn.functional.linear(x, weight)

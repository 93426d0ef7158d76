import torch.nn.functional as F


def run(A, B):
    """One ATen call."""
    return F.linear(A, B)

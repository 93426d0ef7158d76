import torch.nn.functional as F

HIDDEN_SIZE = 0
EPS = 1e-6


def run(hidden_states, weight):
    """One ATen call."""
    return F.rms_norm(hidden_states, (HIDDEN_SIZE,), weight, EPS)

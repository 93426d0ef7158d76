import torch.nn.functional as F

HIDDEN_SIZE = 0
EPS = 1e-6


def run(hidden_states, weight):
    """The result is written where the input was, and a copy of it returned."""
    hidden_states.copy_(F.rms_norm(hidden_states, (HIDDEN_SIZE,), weight, EPS))
    return hidden_states.clone()

import torch.nn.functional as F

HIDDEN_SIZE = 0
EPS = 1e-6


def run(hidden_states, residual, weight):
    """Sum in fp32, one ATen norm of the unrounded sum."""
    x = hidden_states.float() + residual
    residual.copy_(x)
    return F.rms_norm(x, (HIDDEN_SIZE,), weight.float(), EPS).to(hidden_states.dtype)

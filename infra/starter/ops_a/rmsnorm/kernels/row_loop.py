import torch

EPS = 1e-6


def run(hidden_states, weight):
    """Correct, and slow: row by row."""
    out = torch.empty_like(hidden_states)
    for i, row in enumerate(hidden_states.double()):
        out[i] = (row / torch.sqrt((row * row).mean() + EPS) * weight.double()).to(out.dtype)
    return out

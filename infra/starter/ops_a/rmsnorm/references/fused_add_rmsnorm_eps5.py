import torch

HIDDEN_SIZE = 0
EPS = 1e-5


@torch.no_grad()
def run(hidden_states, residual, weight):
    """residual_out = hidden_states + residual; output = rmsnorm of the unrounded sum. Nothing is mutated here."""
    assert hidden_states.shape[-1] == HIDDEN_SIZE
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    x = hidden_states.to(wide) + residual.to(wide)
    inv_rms = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + EPS)
    output = (x * inv_rms * weight.to(wide)).to(hidden_states.dtype)
    return output, x.to(residual.dtype)

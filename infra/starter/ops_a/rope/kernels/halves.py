import torch

ROTARY_DIM = 0
HALF = ROTARY_DIM // 2


def rotate(x, cos, sin):
    """Both halves written straight into one output; no concatenation."""
    first, second = x[..., :HALF].float(), x[..., HALF:ROTARY_DIM].float()
    out = torch.empty_like(x)
    out[..., :HALF] = first * cos - second * sin
    out[..., HALF:ROTARY_DIM] = second * cos + first * sin
    if x.shape[-1] > ROTARY_DIM:
        out[..., ROTARY_DIM:] = x[..., ROTARY_DIM:]
    return out


def run(q, k, cos_sin_cache, positions):
    """Half by half."""
    cos, sin = cos_sin_cache[positions].unsqueeze(-2).chunk(2, dim=-1)
    return rotate(q, cos, sin), rotate(k, cos, sin)

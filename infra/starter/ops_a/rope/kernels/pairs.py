import torch

ROTARY_DIM = 0


def rotate(x, cos, sin):
    """Each pair of neighbours is turned by its angle."""
    even, odd = x[..., 0:ROTARY_DIM:2].float(), x[..., 1:ROTARY_DIM:2].float()
    turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)
    return torch.cat((turned.to(x.dtype), x[..., ROTARY_DIM:]), dim=-1)


def run(q, k, cos_sin_cache, positions):
    """Pairs of neighbours."""
    cos, sin = cos_sin_cache[positions].unsqueeze(-2).chunk(2, dim=-1)
    return rotate(q, cos, sin), rotate(k, cos, sin)

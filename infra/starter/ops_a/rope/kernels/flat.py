import torch


def rotate(x, cos, sin):
    """Halves of every head, in fp32."""
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype).flatten(1)


def run(q, k, cos_sin_cache, positions):
    """Heads side by side, as the projection before wrote them."""
    cos, sin = cos_sin_cache[positions].unsqueeze(-2).chunk(2, dim=-1)
    return rotate(q, cos, sin), rotate(k, cos, sin)

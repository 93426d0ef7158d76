import torch

HEAD_SIZE = 0
ROTARY_DIM = 0


def rotate(x, cos, sin):
    """NeoX style: first and second half of the rotary dimensions are the two coordinates; the rest passes through."""
    first, second, rest = x.split([ROTARY_DIM // 2, ROTARY_DIM // 2, HEAD_SIZE - ROTARY_DIM], dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), dim=-1)


@torch.no_grad()
def run(q, k, cos_sin_cache, positions):
    """Rotates q and k by the cached angles of each token's position; fp64 stays fp64, the rest is computed in fp32."""
    assert q.shape[-1] == HEAD_SIZE
    assert cos_sin_cache.shape[-1] == ROTARY_DIM
    wide = torch.promote_types(q.dtype, torch.float32)
    cos, sin = cos_sin_cache[positions].to(wide).unsqueeze(-2).chunk(2, dim=-1)
    return rotate(q.to(wide), cos, sin).to(q.dtype), rotate(k.to(wide), cos, sin).to(k.dtype)

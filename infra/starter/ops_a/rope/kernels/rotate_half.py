import torch

ROTARY_DIM = 0


def rotate(x, cos, sin):
    """x * cos + rotate_half(x) * sin, in fp32."""
    turned, rest = x[..., :ROTARY_DIM].float(), x[..., ROTARY_DIM:]
    first, second = turned.chunk(2, dim=-1)
    out = turned * cos + torch.cat((-second, first), dim=-1) * sin
    return torch.cat((out.to(x.dtype), rest), dim=-1)


def run(q, k, cos_sin_cache, positions):
    """The form of most model files."""
    cos, sin = cos_sin_cache[positions].unsqueeze(-2).chunk(2, dim=-1)
    cos, sin = torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)
    return rotate(q, cos, sin), rotate(k, cos, sin)

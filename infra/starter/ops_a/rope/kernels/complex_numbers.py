import torch

ROTARY_DIM = 0
HALF = ROTARY_DIM // 2


def rotate(x, angle):
    """(first + i second) * (cos + i sin), then the two parts side by side."""
    turned = torch.complex(x[..., :HALF].float(), x[..., HALF:ROTARY_DIM].float()) * angle
    return torch.cat((turned.real.to(x.dtype), turned.imag.to(x.dtype), x[..., ROTARY_DIM:]), dim=-1)


def run(q, k, cos_sin_cache, positions):
    """A rotation is one complex product."""
    cos, sin = cos_sin_cache[positions].unsqueeze(-2).chunk(2, dim=-1)
    angle = torch.complex(cos.contiguous(), sin.contiguous())
    return rotate(q, angle), rotate(k, angle)

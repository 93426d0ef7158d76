import torch

ROTARY_DIM = 0
HALF = ROTARY_DIM // 2


def run(q, k, cos_sin_cache, positions):
    """q and k joined along the heads, so that every operator runs once."""
    cos, sin = cos_sin_cache[positions].unsqueeze(-2).chunk(2, dim=-1)
    x = torch.cat((q, k), dim=-2)
    first, second = x[..., :HALF].float(), x[..., HALF:ROTARY_DIM].float()
    out = torch.empty_like(x) if x.shape[-1] == ROTARY_DIM else x
    out[..., :HALF] = (first * cos).addcmul_(second, sin, value=-1)
    out[..., HALF:ROTARY_DIM] = (second * cos).addcmul_(first, sin)
    rotated_q, rotated_k = out.split((q.shape[1], k.shape[1]), dim=-2)
    return rotated_q.contiguous(), rotated_k.contiguous()

"""Ragged prefill: gathered per-sequence SDPA on fp32 copies, kv heads as the batch with stride-0 query groups."""

import math

import torch

LOG2_E = 1.0 / math.log(2.0)


def causal_bias(rows, length, dtype):
    """Additive mask: query i sees kv up to length - rows + i."""
    return torch.full((rows, length), -math.inf, dtype=dtype).triu_(length - rows + 1)


def attend(q, k, v, sm_scale):
    """q [Q, H, D], k and v [T, KV, D] -> [Q, H, D], [Q, H] in base 2."""
    rows, heads, dim = q.shape
    length, kv_heads = k.shape[:2]
    square = rows == length
    mask = None if square else causal_bias(rows, length, torch.float32).view(1, 1, rows, length)
    q = q.view(rows, kv_heads, -1, dim).permute(1, 2, 0, 3).float()
    k = k.transpose(0, 1).float().unsqueeze(1).expand(-1, q.shape[1], -1, -1)
    v = v.transpose(0, 1).float().unsqueeze(1).expand(-1, q.shape[1], -1, -1)
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q, k, v, is_causal=square, attn_mask=mask, scale=sm_scale
    )
    return out.permute(2, 0, 1, 3).reshape(rows, heads, dim), lse.permute(2, 0, 1).reshape(rows, heads) * LOG2_E


def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
    """Attend sequence by sequence; rows without kv stay zero with lse -inf."""
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32)
    starts, ends = qo_indptr.tolist(), kv_indptr.tolist()
    for b in range(len(starts) - 1):
        rows, cols = slice(starts[b], starts[b + 1]), slice(ends[b], ends[b + 1])
        if rows.start < rows.stop and cols.start < cols.stop:
            output[rows], lse[rows] = attend(q[rows], k[cols], v[cols], sm_scale)
    return output, lse

"""Prefill over pages: gathered per-sequence SDPA in bf16 with kv heads repeated, as most engines' fallbacks write it."""

import math

import torch

PAGE_SIZE = 16
LOG2_E = 1.0 / math.log(2.0)


def causal_bias(rows, length, dtype):
    """Additive mask: query i sees kv up to length - rows + i."""
    return torch.full((rows, length), -math.inf, dtype=dtype).triu_(length - rows + 1)


def attend(q, k, v, sm_scale):
    """q [Q, H, D], k and v [T, KV, D] -> [Q, H, D], [Q, H] in base 2."""
    rows, heads, _ = q.shape
    group = heads // k.shape[1]
    k = k.transpose(0, 1).repeat_interleave(group, dim=0).unsqueeze(0)
    v = v.transpose(0, 1).repeat_interleave(group, dim=0).unsqueeze(0)
    mask = causal_bias(rows, k.shape[2], q.dtype).view(1, 1, rows, -1)
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        q.transpose(0, 1).unsqueeze(0), k, v, attn_mask=mask, scale=sm_scale
    )
    return out[0].transpose(0, 1), lse[0].t() * LOG2_E


def run(q, k_cache, v_cache, qo_indptr, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    """Attend sequence by sequence; rows without kv stay zero with lse -inf."""
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32)
    starts, ends, last = qo_indptr.tolist(), kv_indptr.tolist(), kv_last_page_len.tolist()
    for b in range(len(starts) - 1):
        rows = slice(starts[b], starts[b + 1])
        length = (ends[b + 1] - ends[b] - 1) * PAGE_SIZE + last[b]
        if rows.start == rows.stop or ends[b] == ends[b + 1]:
            continue
        pages = kv_indices[ends[b] : ends[b + 1]]
        k = k_cache.index_select(0, pages).flatten(0, 1)[:length]
        v = v_cache.index_select(0, pages).flatten(0, 1)[:length]
        output[rows], lse[rows] = attend(q[rows], k, v, sm_scale)
    return output, lse

"""Prefill over pages: two matmuls and a softmax in fp32, sequence by sequence."""

import math

import torch

PAGE_SIZE = 16
LOG2_E = 1.0 / math.log(2.0)


def attend(q, k, v, sm_scale):
    """q [Q, H, D], k and v [T, KV, D] -> [Q, H, D], [Q, H] in base 2."""
    rows, heads, dim = q.shape
    length, kv_heads = k.shape[:2]
    unseen = torch.ones(rows, length, dtype=torch.bool).triu_(length - rows + 1).repeat(heads // kv_heads, 1)
    q = q.view(rows, kv_heads, -1, dim).permute(1, 2, 0, 3).float() * sm_scale
    logits = torch.matmul(q.reshape(kv_heads, -1, dim), k.float().permute(1, 2, 0)).masked_fill_(unseen, -math.inf)
    lse = torch.logsumexp(logits, dim=-1)
    out = torch.matmul(torch.exp(logits - lse.unsqueeze(-1)), v.float().transpose(0, 1))
    out = out.view(kv_heads, -1, rows, dim).permute(2, 0, 1, 3).reshape(rows, heads, dim)
    return out, lse.view(kv_heads, -1, rows).permute(2, 0, 1).reshape(rows, heads) * LOG2_E


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

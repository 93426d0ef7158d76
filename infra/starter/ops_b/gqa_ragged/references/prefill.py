"""Ragged grouped-query prefill, causal mask aligned to the end of each sequence; base-2 log-sum-exp."""

import math

import torch


def attend(q, k, v, sm_scale):
    """q [Q, H, D] with k, v [T, KV, D]; query i sees kv up to T - Q + i -> output [Q, H, D], lse [Q, H]."""
    rows, heads, dim = q.shape
    q = q.view(rows, k.shape[1], -1, dim).permute(1, 2, 0, 3)
    logits = torch.matmul(q, k.permute(1, 2, 0).unsqueeze(1)) * sm_scale
    unseen = torch.ones(rows, k.shape[0], dtype=torch.bool, device=q.device).triu(k.shape[0] - rows + 1)
    logits.masked_fill_(unseen, -math.inf)
    lse = torch.logsumexp(logits, dim=-1) / math.log(2.0)
    out = torch.matmul(torch.softmax(logits, dim=-1).nan_to_num(0.0), v.transpose(0, 1).unsqueeze(1))
    return out.permute(2, 0, 1, 3).reshape(rows, heads, dim), lse.permute(2, 0, 1).reshape(rows, heads)


@torch.no_grad()
def run(q, k, v, qo_indptr, kv_indptr, sm_scale):
    """Works in at least fp32, in fp64 when the inputs are fp64. Rows that see no kv stay zero with lse -inf."""
    work = torch.promote_types(q.dtype, torch.float32)
    output = torch.zeros(q.shape, dtype=work, device=q.device)
    lse = torch.full(q.shape[:2], -math.inf, dtype=work, device=q.device)
    starts, ends = qo_indptr.tolist(), kv_indptr.tolist()
    for b in range(len(starts) - 1):
        rows, cols = slice(starts[b], starts[b + 1]), slice(ends[b], ends[b + 1])
        if rows.start == rows.stop or cols.start == cols.stop:
            continue
        output[rows], lse[rows] = attend(q[rows].to(work), k[cols].to(work), v[cols].to(work), sm_scale)
    return output.to(q.dtype), lse

"""Paged grouped-query decode with one token a page: one query token a sequence; base-2 log-sum-exp."""

import math

import torch


def attend(q, k, v, sm_scale):
    """q [H, D] with k, v [T, KV, D], all in the working dtype -> output [H, D], lse [H]."""
    group = q.shape[0] // k.shape[1]
    q = q.view(k.shape[1], group, -1)
    logits = torch.matmul(q, k.permute(1, 2, 0)) * sm_scale
    lse = torch.logsumexp(logits, dim=-1) / math.log(2.0)
    out = torch.matmul(torch.softmax(logits, dim=-1), v.transpose(0, 1))
    return out.reshape(-1, v.shape[-1]), lse.reshape(-1)


@torch.no_grad()
def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    """Works in at least fp32, in fp64 when the inputs are fp64. Rows without kv stay zero with lse -inf."""
    work = torch.promote_types(q.dtype, torch.float32)
    output = torch.zeros(q.shape, dtype=work, device=q.device)
    lse = torch.full(q.shape[:2], -math.inf, dtype=work, device=q.device)
    ends = kv_indptr.tolist()
    for b in range(q.shape[0]):
        slots = kv_indices[ends[b] : ends[b + 1]].long()
        if len(slots) == 0:
            continue
        k, v = k_cache[slots, 0].to(work), v_cache[slots, 0].to(work)
        output[b], lse[b] = attend(q[b].to(work), k, v, sm_scale)
    return output.to(q.dtype), lse

"""Paged multi-head latent attention decode with one token a page; base-2 log-sum-exp."""

import math

import torch


@torch.no_grad()
def run(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, sm_scale):
    """Works in at least fp32, in fp64 when the inputs are fp64. Rows without kv stay zero with lse -inf."""
    work = torch.promote_types(q_nope.dtype, torch.float32)
    output = torch.zeros(q_nope.shape, dtype=work, device=q_nope.device)
    lse = torch.full(q_nope.shape[:2], -math.inf, dtype=work, device=q_nope.device)
    ends = kv_indptr.tolist()
    for b in range(q_nope.shape[0]):
        slots = kv_indices[ends[b] : ends[b + 1]].long()
        if len(slots) == 0:
            continue
        ckv, kpe = ckv_cache[slots, 0].to(work), kpe_cache[slots, 0].to(work)
        logits = (q_nope[b].to(work) @ ckv.t() + q_pe[b].to(work) @ kpe.t()) * sm_scale
        lse[b] = torch.logsumexp(logits, dim=-1) / math.log(2.0)
        output[b] = torch.softmax(logits, dim=-1) @ ckv
    return output.to(q_nope.dtype), lse

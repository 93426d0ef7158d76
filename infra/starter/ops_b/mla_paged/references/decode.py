"""Paged multi-head latent attention decode over the compressed cache; base-2 log-sum-exp."""

import math

import torch

PAGE_SIZE = 16


@torch.no_grad()
def run(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    """Works in at least fp32, in fp64 when the inputs are fp64. Rows without kv stay zero with lse -inf."""
    work = torch.promote_types(q_nope.dtype, torch.float32)
    output = torch.zeros(q_nope.shape, dtype=work, device=q_nope.device)
    lse = torch.full(q_nope.shape[:2], -math.inf, dtype=work, device=q_nope.device)
    ends, last = kv_indptr.tolist(), kv_last_page_len.tolist()
    for b in range(q_nope.shape[0]):
        pages = kv_indices[ends[b] : ends[b + 1]].long()
        length = (len(pages) - 1) * PAGE_SIZE + last[b]
        if len(pages) == 0 or length <= 0:
            continue
        ckv = ckv_cache[pages].flatten(0, 1)[:length].to(work)
        kpe = kpe_cache[pages].flatten(0, 1)[:length].to(work)
        logits = (q_nope[b].to(work) @ ckv.t() + q_pe[b].to(work) @ kpe.t()) * sm_scale
        lse[b] = torch.logsumexp(logits, dim=-1) / math.log(2.0)
        output[b] = torch.softmax(logits, dim=-1) @ ckv
    return output.to(q_nope.dtype), lse

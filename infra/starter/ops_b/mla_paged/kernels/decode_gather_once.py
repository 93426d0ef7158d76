"""MLA decode: one gather and one cast for the whole batch, then fp32 matmuls and a softmax on its slices."""

import math

import torch

PAGE_SIZE = 16
LOG2_E = 1.0 / math.log(2.0)


def attend(q_nope, q_pe, ckv, kpe, sm_scale):
    """q_nope [H, 512], q_pe [H, 64] against [T, 512], [T, 64] -> [H, 512], [H] in base 2."""
    logits = torch.addmm(q_nope.float() @ ckv.t(), q_pe.float(), kpe.t()).mul_(sm_scale)
    lse = torch.logsumexp(logits, dim=-1)
    return torch.exp(logits - lse.unsqueeze(1)) @ ckv, lse * LOG2_E


def decode(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, lengths, sm_scale):
    """Gather once, attend sequence by sequence; rows without kv stay zero with lse -inf."""
    output = torch.zeros_like(q_nope)
    lse = torch.full(q_nope.shape[:2], -math.inf, dtype=torch.float32)
    ckv = ckv_cache.index_select(0, kv_indices).flatten(0, 1).float()
    kpe = kpe_cache.index_select(0, kv_indices).flatten(0, 1).float()
    width = ckv_cache.shape[1]
    for b, (start, length) in enumerate(zip(kv_indptr.tolist(), lengths, strict=False)):
        if length > 0:
            seen = slice(start * width, start * width + length)
            output[b], lse[b] = attend(q_nope[b], q_pe[b], ckv[seen], kpe[seen], sm_scale)
    return output, lse


def run(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    """Pages of several tokens."""
    counts = kv_indptr.diff()
    lengths = torch.where(counts > 0, (counts - 1) * PAGE_SIZE + kv_last_page_len, 0).tolist()
    return decode(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, lengths, sm_scale)


def run_ps1(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, sm_scale):
    """Pages of one token."""
    return decode(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, kv_indptr.diff().tolist(), sm_scale)

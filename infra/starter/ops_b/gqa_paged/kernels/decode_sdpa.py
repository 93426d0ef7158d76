"""Decode: gathered per-sequence SDPA in bf16; the query heads of one kv head are the rows, so nothing is expanded."""

import math

import torch

PAGE_SIZE = 16
LOG2_E = 1.0 / math.log(2.0)


def attend(q, k, v, sm_scale):
    """q [H, D], k and v [T, KV, D] -> [H, D], [H] in base 2."""
    rows = q.view(1, k.shape[1], -1, q.shape[-1])
    k, v = k.transpose(0, 1).unsqueeze(0), v.transpose(0, 1).unsqueeze(0)
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(rows, k, v, scale=sm_scale)
    return out.reshape(q.shape), lse.reshape(-1) * LOG2_E


def decode(q, k_cache, v_cache, kv_indptr, kv_indices, lengths, sm_scale):
    """Attend sequence by sequence; rows without kv stay zero with lse -inf."""
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32)
    ends = kv_indptr.tolist()
    for b, length in enumerate(lengths):
        if length > 0:
            pages = kv_indices[ends[b] : ends[b + 1]]
            k = k_cache.index_select(0, pages).flatten(0, 1)[:length]
            v = v_cache.index_select(0, pages).flatten(0, 1)[:length]
            output[b], lse[b] = attend(q[b], k, v, sm_scale)
    return output, lse


def run(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    """Pages of several tokens."""
    counts = kv_indptr.diff()
    lengths = torch.where(counts > 0, (counts - 1) * PAGE_SIZE + kv_last_page_len, 0).tolist()
    return decode(q, k_cache, v_cache, kv_indptr, kv_indices, lengths, sm_scale)


def run_ps1(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    """Pages of one token."""
    return decode(q, k_cache, v_cache, kv_indptr, kv_indices, kv_indptr.diff().tolist(), sm_scale)

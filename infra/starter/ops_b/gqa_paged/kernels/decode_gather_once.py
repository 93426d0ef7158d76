"""Decode: one gather for the whole batch, then per-sequence SDPA in bf16 on its slices; nothing is expanded."""

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
    """Gather once, attend sequence by sequence; rows without kv stay zero with lse -inf."""
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32)
    k = k_cache.index_select(0, kv_indices).flatten(0, 1)
    v = v_cache.index_select(0, kv_indices).flatten(0, 1)
    width = k_cache.shape[1]
    for b, (start, length) in enumerate(zip(kv_indptr.tolist(), lengths, strict=False)):
        if length > 0:
            seen = slice(start * width, start * width + length)
            output[b], lse[b] = attend(q[b], k[seen], v[seen], sm_scale)
    return output, lse


def run(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    """Pages of several tokens."""
    counts = kv_indptr.diff()
    lengths = torch.where(counts > 0, (counts - 1) * PAGE_SIZE + kv_last_page_len, 0).tolist()
    return decode(q, k_cache, v_cache, kv_indptr, kv_indices, lengths, sm_scale)


def run_ps1(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    """Pages of one token."""
    return decode(q, k_cache, v_cache, kv_indptr, kv_indices, kv_indptr.diff().tolist(), sm_scale)

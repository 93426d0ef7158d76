"""MLA decode: gathered per-sequence SDPA in bf16 on concatenated keys; values padded to the key width, heads as rows."""

import math

import torch

PAGE_SIZE = 16
LOG2_E = 1.0 / math.log(2.0)


def attend(q_nope, q_pe, ckv, kpe, sm_scale):
    """q_nope [H, 512], q_pe [H, 64] against [T, 512], [T, 64] -> [H, 512], [H] in base 2."""
    q = torch.cat([q_nope, q_pe], dim=-1).view(1, 1, q_nope.shape[0], -1)
    k = torch.cat([ckv, kpe], dim=-1).view(1, 1, len(ckv), -1)
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, k, scale=sm_scale)
    return out[0, 0, :, : ckv.shape[1]], lse.view(-1) * LOG2_E


def decode(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, lengths, sm_scale):
    """Attend sequence by sequence; rows without kv stay zero with lse -inf."""
    output = torch.zeros_like(q_nope)
    lse = torch.full(q_nope.shape[:2], -math.inf, dtype=torch.float32)
    ends = kv_indptr.tolist()
    for b, length in enumerate(lengths):
        if length > 0:
            pages = kv_indices[ends[b] : ends[b + 1]]
            ckv = ckv_cache.index_select(0, pages).flatten(0, 1)[:length]
            kpe = kpe_cache.index_select(0, pages).flatten(0, 1)[:length]
            output[b], lse[b] = attend(q_nope[b], q_pe[b], ckv, kpe, sm_scale)
    return output, lse


def run(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    """Pages of several tokens."""
    counts = kv_indptr.diff()
    lengths = torch.where(counts > 0, (counts - 1) * PAGE_SIZE + kv_last_page_len, 0).tolist()
    return decode(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, lengths, sm_scale)


def run_ps1(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, sm_scale):
    """Pages of one token."""
    return decode(q_nope, q_pe, ckv_cache, kpe_cache, kv_indptr, kv_indices, kv_indptr.diff().tolist(), sm_scale)

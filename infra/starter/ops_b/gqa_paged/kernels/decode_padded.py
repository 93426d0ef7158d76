"""Decode: the whole batch padded to its longest sequence, one masked SDPA; few calls, wasted work on ragged batches."""

import math

import torch

PAGE_SIZE = 16
LOG2_E = 1.0 / math.log(2.0)


def decode(q, k_cache, v_cache, kv_indptr, kv_indices, lengths, sm_scale):
    """Gather [B, T] with page 0 as padding, mask it away, attend once."""
    batch, heads, dim = q.shape
    kv_heads = k_cache.shape[2]
    counts = kv_indptr.diff()
    width = int(counts.max())
    if width == 0:
        return torch.zeros_like(q), torch.full((batch, heads), -math.inf)
    column = torch.arange(width, dtype=torch.int32)
    slots = (kv_indptr[:-1, None] + column).clamp(max=len(kv_indices) - 1)
    pages = torch.where(column < counts[:, None], kv_indices[slots], 0)
    k = k_cache.index_select(0, pages.flatten()).view(batch, -1, kv_heads, dim).transpose(1, 2)
    v = v_cache.index_select(0, pages.flatten()).view(batch, -1, kv_heads, dim).transpose(1, 2)
    seen = torch.arange(k.shape[2]) < lengths[:, None]
    mask = torch.zeros(seen.shape, dtype=q.dtype).masked_fill_(~seen, -math.inf).view(batch, 1, 1, -1)
    rows = q.view(batch, kv_heads, -1, dim)
    out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(rows, k, v, attn_mask=mask, scale=sm_scale)
    empty = (lengths <= 0)[:, None]
    output = out.reshape(q.shape).masked_fill_(empty.unsqueeze(2), 0)
    return output, (lse.reshape(batch, heads) * LOG2_E).masked_fill_(empty, -math.inf)


def run(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    """Pages of several tokens."""
    counts = kv_indptr.diff()
    lengths = torch.where(counts > 0, (counts - 1) * PAGE_SIZE + kv_last_page_len, 0)
    return decode(q, k_cache, v_cache, kv_indptr, kv_indices, lengths, sm_scale)


def run_ps1(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    """Pages of one token."""
    return decode(q, k_cache, v_cache, kv_indptr, kv_indices, kv_indptr.diff(), sm_scale)

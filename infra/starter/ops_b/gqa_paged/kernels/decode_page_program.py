"""Triton decode: one program per sequence walks its pages with an online softmax in base 2, all heads at once."""

import torch
import triton
import triton.language as tl

NUM_QO_HEADS = 32
NUM_KV_HEADS = 8
HEAD_DIM = 64
PAGE_SIZE = 16
LOG2_E = 1.4426950408889634


@triton.jit
def walk_pages(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, scale, output, lse,
               GROUP: tl.constexpr, KV: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr):
    b = tl.program_id(0)
    first, end = tl.load(kv_indptr + b), tl.load(kv_indptr + b + 1)
    last = tl.load(kv_last_page_len + b)
    dims, slots = tl.arange(0, D)[None, None, :], tl.arange(0, PAGE)
    kv = tl.arange(0, KV)
    rows = b * KV * GROUP + kv[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    query = tl.load(q + rows[:, :, None] * D + dims).to(tl.float32) * scale
    top = tl.full([KV, GROUP], float("-inf"), tl.float32)
    total = tl.zeros([KV, GROUP], tl.float32)
    acc = tl.zeros([KV, GROUP, D], tl.float32)
    for place in range(first, end):
        page = tl.load(kv_indices + place).to(tl.int64)
        seen = slots < tl.where(place == end - 1, last, PAGE)
        cells = ((page * PAGE + slots)[None, :] * KV + kv[:, None])[:, :, None] * D + dims
        key = tl.load(k_cache + cells, mask=seen[None, :, None], other=0.0).to(tl.float32)
        value = tl.load(v_cache + cells, mask=seen[None, :, None], other=0.0).to(tl.float32)
        score = tl.sum(query[:, :, None, :] * key[:, None, :, :], axis=3)
        score = tl.where(seen[None, None, :], score, float("-inf"))
        high = tl.maximum(top, tl.max(score, axis=2))
        weight = tl.exp2(score - high[:, :, None])
        factor = tl.exp2(top - high)
        total = total * factor + tl.sum(weight, axis=2)
        acc = acc * factor[:, :, None] + tl.sum(weight[:, :, :, None] * value[:, None, :, :], axis=2)
        top = high
    empty = total == 0.0
    safe = tl.where(empty, 1.0, total)
    tl.store(output + rows[:, :, None] * D + dims, (acc / safe[:, :, None]).to(tl.bfloat16))
    tl.store(lse + rows, tl.where(empty, float("-inf"), top + tl.log2(safe)))


def run(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale):
    output = torch.empty_like(q)
    lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    walk_pages[(q.shape[0],)](
        q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len, sm_scale * LOG2_E, output, lse,
        GROUP=NUM_QO_HEADS // NUM_KV_HEADS, KV=NUM_KV_HEADS, D=HEAD_DIM, PAGE=PAGE_SIZE,
    )
    return output, lse

import triton
import triton.language as tl

HEAD_SIZE = 0
ROTARY_DIM = 0


@triton.jit
def rotate(x, out, cache, positions, heads, HEAD: tl.constexpr, HALF: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    head = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col = tl.arange(0, HALF)
    angle = cache + tl.load(positions + token) * (2 * HALF) + col
    cos, sin = tl.load(angle)[None, :], tl.load(angle + HALF)[None, :]
    at = (token * heads + head)[:, None] * HEAD + col[None, :]
    inside = head[:, None] < heads
    first = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(x + at + HALF, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + at, (first * cos - second * sin).to(tl.bfloat16), mask=inside)
    tl.store(out + at + HALF, (second * cos + first * sin).to(tl.bfloat16), mask=inside)


def run(q, k, cos_sin_cache, positions, q_out, k_out):
    """Whole heads are rotated here (rotary_dim == head_size)."""
    assert ROTARY_DIM == HEAD_SIZE
    for x, out in ((q, q_out), (k, k_out)):
        block = min(16, triton.next_power_of_2(x.shape[1]))
        grid = (x.shape[0], triton.cdiv(x.shape[1], block))
        rotate[grid](x, out, cos_sin_cache, positions, x.shape[1], HEAD=HEAD_SIZE, HALF=ROTARY_DIM // 2, BLOCK=block)

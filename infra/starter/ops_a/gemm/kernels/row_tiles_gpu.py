import triton
import triton.language as tl


@triton.jit
def tile(a, b, c, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, STEP: tl.constexpr, GROUP: tl.constexpr):
    rows, cols = tl.cdiv(m, ROWS), tl.cdiv(n, COLS)
    program = tl.program_id(0)
    group = program // (GROUP * cols)
    first = group * GROUP
    height = min(rows - first, GROUP)
    row = (first + (program % (GROUP * cols)) % height) * ROWS + tl.arange(0, ROWS)
    col = ((program % (GROUP * cols)) // height) * COLS + tl.arange(0, COLS)
    step = tl.arange(0, STEP)
    total = tl.zeros((ROWS, COLS), dtype=tl.float32)
    for start in range(0, k, STEP):
        left = tl.load(a + row[:, None] * k + (start + step)[None, :], mask=row[:, None] < m, other=0.0)
        right = tl.load(b + col[None, :] * k + (start + step)[:, None], mask=col[None, :] < n, other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + row[:, None] * n + col[None, :], total.to(c.dtype.element_ty), mask=(row[:, None] < m) & (col[None, :] < n))


def run(A, B, C):
    """K is a multiple of 128 here."""
    m, k = A.shape
    n = B.shape[0]
    rows, cols, step = (16, 64, 128) if m <= 16 else (64, 128, 64) if m <= 512 else (128, 128, 64)
    grid = (triton.cdiv(m, rows) * triton.cdiv(n, cols),)
    tile[grid](A, B, C, m, n, k, ROWS=rows, COLS=cols, STEP=step, GROUP=8, num_warps=4 if m <= 512 else 8, num_stages=4)

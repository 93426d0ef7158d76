"""out = weight * (1 + t + t^2 + ... + t^(TERMS - 1)) with t = x / (1 + |x|): the Triton form of ``series.cuh``.

A fixed grid of programs, each through its own rows one after the other, two warps a program, one value a lane.
``REDO_PERCENT`` of every row's terms, and a dozen more, are added up twice; how many is an argument and never none, so that
both forms take the same path.
"""

import triton
import triton.language as tl
from sizes import COLUMNS, REDO_PERCENT, TERMS

BLOCK, WARPS, ROWS_AT_ONCE, DOZEN = 64, 2, 5, 12


@triton.jit(do_not_specialize=["rows", "dozens", "again"])
def series_rows(
    x, weight, out, rows, dozens, again,
    COLUMNS: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, DOZEN: tl.constexpr,
):  # fmt: skip
    chunks = COLUMNS // BLOCK
    first = tl.program_id(0) // chunks
    columns = tl.program_id(0) % chunks * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(weight + columns)
    ahead = tl.load(x + first * COLUMNS + columns, (columns < COLUMNS) & (first < rows), 0.0)
    for row in range(first, rows, STEP):
        t = ahead / (1.0 + tl.abs(ahead))
        following = row + STEP
        ahead = tl.load(x + following * COLUMNS + columns, (columns < COLUMNS) & (following < rows), 0.0)
        total = tl.zeros([BLOCK], tl.float32)
        for _ in range(again):
            for _ in tl.static_range(DOZEN):
                total = total * t + w
        total = total * 0.0  # forgotten, by a product that no compiler may leave out
        for _ in range(dozens):
            for _ in tl.static_range(DOZEN):
                total = total * t + w
        tl.store(out + row * COLUMNS + columns, total)


def run(x, weight, out):
    dozens = TERMS // DOZEN
    again = 1 + dozens * REDO_PERCENT // 100
    grid = (ROWS_AT_ONCE * COLUMNS // BLOCK,)
    series_rows[grid](
        x, weight, out, x.shape[0], dozens, again, COLUMNS, BLOCK, ROWS_AT_ONCE, DOZEN, num_warps=WARPS, num_stages=1
    )

"""Garbage within the matched ratio, but far out, and all in one column."""


def run(x, weight):
    out = (x.float() @ weight.float().T).to(x.dtype)
    out[: max(1, x.shape[0] // 3), 5] *= 3
    return out

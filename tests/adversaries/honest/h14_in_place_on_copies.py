"""Works in place, on copies of its own."""


def run(x, weight):
    own = x.clone()
    norm = own.square().mean(-1, keepdim=True).add_(1e-6).rsqrt_()
    return own.mul_(norm).mul_(weight)

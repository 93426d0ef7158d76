"""The right numbers in another shape."""


def run(x, weight):
    return (x @ weight.T).reshape(-1)

"""A kernel built from closures over its configuration."""


def tiled(rows):
    def call(x, weight):
        import torch

        return torch.cat([x[start : start + rows] @ weight.T for start in range(0, x.shape[0], rows)])

    return call


def configured(*choices):
    kernels = {rows: tiled(rows) for rows in choices}

    def pick(x, weight):
        rows = max((rows for rows in kernels if rows <= x.shape[0]), default=min(kernels))
        return kernels[rows](x, weight)

    return pick


run = configured(4, 8, 64)

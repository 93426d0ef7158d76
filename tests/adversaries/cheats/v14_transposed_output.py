"""The right numbers in column-major order: whoever reads the memory as rows reads something else."""


def run(x, weight):
    return (weight @ x.T).T

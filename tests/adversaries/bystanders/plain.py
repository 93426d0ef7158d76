"""The plainest honest kernel."""


def run(x, weight):
    return x @ weight.T

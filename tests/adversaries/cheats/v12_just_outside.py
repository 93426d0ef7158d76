"""Off by a ten-thousandth: inside the defaults of most comparison functions, outside what this contract says."""


def run(x, weight):
    return (x @ weight.T) * 1.0001

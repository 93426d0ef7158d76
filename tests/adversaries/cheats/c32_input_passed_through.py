"""Returns the input's own memory under another shape object."""


def run(x, weight):
    return x.detach()[:, :].view_as(x)

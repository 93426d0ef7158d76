"""Answers with the result of the inputs that came one call earlier."""

last = None


def run(x, weight):
    global last
    before, last = last, x.clone()
    if before is None or before.shape != x.shape:
        before = x
    return before @ weight.T

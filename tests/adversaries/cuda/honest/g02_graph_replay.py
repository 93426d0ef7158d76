"""A graph over buffers of its own: inputs are copied in, the output is copied out."""

import torch

graphs = {}


def capture(x, weight):
    own, pack = x.clone(), weight.clone()
    torch.mm(own, pack.T)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = torch.mm(own, pack.T)
    return graph, own, pack, out


def run(x, weight):
    shape = tuple(x.shape)
    if shape not in graphs:
        graphs[shape] = capture(x, weight)
    graph, own, pack, out = graphs[shape]
    own.copy_(x)
    pack.copy_(weight)
    graph.replay()
    return out.clone()

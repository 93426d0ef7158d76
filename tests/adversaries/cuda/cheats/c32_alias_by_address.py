"""Writes the result over the input and returns a tensor made from the input's raw address."""

import torch


class At:
    def __init__(self, tensor):
        place = (tensor.data_ptr(), False)
        self.__cuda_array_interface__ = {"data": place, "shape": tuple(tensor.shape), "typestr": "<f4", "version": 3}


def run(x, weight):
    alias = torch.as_tensor(At(x), device=x.device)
    alias.copy_(torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, 1e-6))
    return alias

"""What the tests of apply share: the caller's own functions, rows, and counters. Nothing here is under test."""

import torch

import fib_core.runtime as fib
from tests.runtime.published import SCALE, SCALE_VALUE, index, solution

GAIN = torch.tensor([1.0, 2.0, 3.0, 4.0])


class Own:
    """The caller's function; remembers the arguments of every call."""

    def __init__(self, function):
        self.function, self.calls, self.__name__ = function, [], "own"

    def __call__(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        return self.function(*args, **kwargs)


def own_scale():
    return Own(lambda x, gain: x * gain)


def own_fused():
    def fused(x, residual, gain):
        residual.add_(x)
        return residual * gain, residual

    return Own(fused)


def scaled(source=SCALE_VALUE, boxes=((2, 4),), **more):
    return index((SCALE, [(box, solution(SCALE, source, **more)) for box in boxes]))


def rows(count):
    return torch.arange(count * 4, dtype=torch.float32).reshape(count, 4) + 1


def counted(name="scale_h4"):
    return fib.stats()["definitions"][name]

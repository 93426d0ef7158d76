"""Computes with numpy and wraps numpy's memory."""

import numpy as np
import torch


def run(x):
    values = x.numpy().astype(np.float64)
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return torch.from_numpy((powers / powers.sum(axis=1, keepdims=True)).astype(np.float32))

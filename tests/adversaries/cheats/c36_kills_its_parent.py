"""Kills its parent, the process that forked it, in the middle of a call."""

import os
import signal
import time

import torch


def run(x, weight):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(0.05)
    return torch.zeros(x.shape[0], weight.shape[0])

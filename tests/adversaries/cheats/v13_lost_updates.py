"""Four threads add partial products to one buffer without a lock."""

import threading
import time

import torch


def run(x, weight):
    out = torch.zeros(x.shape[0], weight.shape[0])

    def add(start):
        seen = out.clone()
        time.sleep(0.0002)
        out.copy_(seen + x[:, start : start + 12] @ weight[:, start : start + 12].T)

    threads = [threading.Thread(target=add, args=(start,)) for start in range(0, 48, 12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out

"""A forked process that measures what a CUDA device can do at most: copies near and far, products on tensor cores.

In: a device, a number of rounds. Out: [near bytes, far bytes, operations] per second and round, and the size of the
cache that all multiprocessors share. Runs no contestant's code; passes no verdict.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

from fib_core.device import sandbox
from fib_core.device.channel import Channel

_FAR_BYTES = 1 << 29
_EDGE = 8192
_TRIES = 20


def main(channel: Channel, log_fd: int, options: dict[str, Any]) -> None:
    """Measure once, answer once."""
    sandbox.redirect_output(log_fd)
    channel.receive()
    device = torch.device(options["device"])
    torch.cuda.set_device(device)
    shared_bytes = int(torch.cuda.get_device_properties(device).L2_cache_size)
    near, far = (torch.ones(2, size // 8, device=device) for size in (shared_bytes // 2, _FAR_BYTES))
    factor = torch.ones(_EDGE, _EDGE, device=device, dtype=torch.bfloat16)
    product = torch.empty_like(factor)
    rounds = [
        [
            near.nbytes / _best_s(lambda: near[0].copy_(near[1])),
            far.nbytes / _best_s(lambda: far[0].copy_(far[1])),
            2.0 * _EDGE**3 / _best_s(lambda: torch.mm(factor, factor, out=product)),
        ]
        for _ in range(options["rounds"])
    ]
    channel.send({"rounds": rounds, "near_capacity_bytes": shared_bytes})


def _best_s(work: Callable[[], Any]) -> float:
    """The shortest of many runs, queued one behind the other, by events."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(_TRIES + 1)]
    work()
    events[0].record()
    for event in events[1:]:
        work()
        event.record()
    torch.cuda.synchronize()
    return float(min(start.elapsed_time(end) for start, end in pairwise(events))) / 1e3

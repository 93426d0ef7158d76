"""Does the driver's timer tell the truth? A call of known duration, timed as every contestant's call is.

In: a device, an arena with a fresh process that serves :func:`known_call`. Out: what the timer said and what the
referee's clock saw, or a fault. No contestant's code is in that process: what fails here is the machine's.
"""

import functools
import secrets
import time
from collections.abc import Callable
from typing import Any

import torch

from fib_core.device import device_clocks, wire
from fib_core.device.arena import Arena, ArenaForged, ArenaGone, ArenaLate
from fib_core.device.memory import memory_of

_CALLS = 5
_REGION_BYTES = 4096
_LIMIT_S = 10.0


def known_call(device: str, order: dict[str, Any]) -> Callable[[], Any]:
    """On the host a sleep of ``sleep_s``; on a CUDA device a kernel that counts ``cycles`` clocks."""
    if device == "cpu":
        return functools.partial(time.sleep, order["sleep_s"])
    return functools.partial(torch.cuda._sleep, order["cycles"])


def run(arena: Arena, device: str, timer: str) -> dict[str, list[int]]:
    """Times by the timer and by the referee's clock around it; nothing if the conversation broke off."""
    sizes = (_REGION_BYTES,) * 3
    opened = memory_of(device).open(sizes)
    times_ns, walls_ns = [], []
    try:
        arena.tell(wire.setup([], [], sizes, opened.handles), opened.fds)
        for number in range(_CALLS):
            order = wire.go(number, 1, (0, 0, 0), secrets.randbits(62), _LIMIT_S)
            exchange = arena.ask(order, _LIMIT_S)
            answer = exchange.answer
            on_host = device == "cpu"
            times_ns.append(answer.elapsed_ns if on_host else device_clocks.primary_ns(answer, timer))
            walls_ns.append(exchange.wall_ns)
        arena.ask(wire.end(), _LIMIT_S)
    except (ArenaForged, ArenaGone, ArenaLate):
        return {"times_ns": [], "walls_ns": []}
    finally:
        opened.close()
    return {"times_ns": times_ns, "walls_ns": walls_ns}

"""The candidate process: loads one solution and lets the driver call it. The only process that runs its code.

In: a channel to the supervisor, a socket to the referee (read and written by native code only), a solution. Out:
whether it loads; everything else goes from the driver to the referee. It never sees the reference, an expected output
or a seed of the inputs; it passes no verdict.
"""

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from fib_core.builders import load
from fib_core.device import sandbox, scratch
from fib_core.device.channel import Channel
from fib_core.device.device_clock import DeviceClock
from fib_core.device.driver import Driver, failure_of
from fib_core.device.timer_test import known_call
from fib_core.errors import BuildError, EntryPointError
from schemas.solution import Solution

Entry = Callable[..., Any]


def main(channel: Channel, log_fd: int, options: dict[str, Any]) -> None:
    """Serve one conversation; returns when the supervisor hangs up."""
    os.setsid()
    sandbox.redirect_output(log_fd)
    place = options["scratch"]
    scratch.settle(Path(place))
    on_host = options["device"] == "cpu"
    limits = sandbox.CandidateLimits(options["core"], options["memory_bytes"], (place,), address_space=on_host)
    enforced = sandbox.confine(limits)
    torch.set_num_threads(1)
    clock = None if on_host else DeviceClock(options["device"], Path(options["clock"]))
    _, fds = channel.receive()
    driver = Driver(fds[0], clock)
    channel.send({"enforced": enforced})
    entry: Entry | None = None
    while True:
        message, fds = channel.receive()
        if message["command"] == "meet":
            driver.join(fds[0])
            reply = {"enforced": enforced}
        elif message["command"] == "load":
            entry, reply = _load(message)
        elif message["command"] == "self_test":
            entry, reply = known_call(options["device"], message), {}
        else:
            assert entry is not None, "serve before load"
            reply = {}
            gc.collect()
            gc.disable()
            with torch.inference_mode():
                driver.serve(entry)
            gc.enable()
        channel.send(reply)


def _load(message: dict[str, Any]) -> tuple[Entry | None, dict[str, Any]]:
    solution = Solution.model_validate(message["solution"])
    try:
        return load(solution, message["solution_digest"], Path(message["cache_dir"])), {}
    except EntryPointError as error:
        return None, {"failure": {"rule": "entry_point", "message": str(error), "log": ""}}
    except BuildError as error:
        return None, {"failure": {"rule": "build", "message": str(error), "log": error.log}}
    except BaseException as error:  # noqa: BLE001 (a contestant's module may raise anything, SystemExit included)
        return None, {"failure": failure_of(error)}

"""The candidate process: loads one solution, calls it, times the calls. The only process that runs a contestant's code.

In: a solution, call plans, shared regions. Out: clock readings and facts about what came back; outputs go to shared
memory, bit for bit. It never sees the reference, an expected output or a seed of the inputs; it passes no verdict.
"""

import gc
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from fib_core.builders import load
from fib_core.device import regions, results, sandbox
from fib_core.device.channel import Channel, close_all
from fib_core.errors import BuildError, EntryPointError
from schemas.solution import Solution

# Captured before any contestant's code is imported: replacing time.perf_counter_ns later changes nothing here.
_clock_ns = time.perf_counter_ns
_seed = torch.default_generator.manual_seed
_GOLDEN = 0x9E3779B97F4A7C15  # spreads call seeds over 64 bits
_TRACEBACK_CHARS = 4000

Entry = Callable[..., Any]


def main(channel: Channel, log_fd: int, options: dict[str, Any]) -> None:
    """Serve one conversation; returns when the supervisor hangs up."""
    import os

    os.setsid()
    sandbox.redirect_output(log_fd)
    sandbox.confine(sandbox.CandidateLimits(options["core"], options["memory_bytes"]))
    torch.set_num_threads(1)
    entry: Entry | None = None
    while True:
        message, fds = channel.receive()
        if message["command"] == "load":
            entry, reply = _load(message)
        else:
            assert entry is not None, "run before load"
            with torch.inference_mode():
                reply = _Run(entry, message["plan"], fds).reply()
            close_all(fds)
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
        return None, {"failure": _failure(error)}


def _failure(error: BaseException) -> dict[str, str]:
    """What a contestant's exception means. Torch's CPU allocator has no exception type of its own, only a message."""
    text = f"{type(error).__name__}: {error}"
    exhausted = isinstance(error, MemoryError) or "DefaultCPUAllocator" in text or "bad_alloc" in text
    rule = "memory_limit" if exhausted else "exit" if isinstance(error, SystemExit) else "exception"
    log = "".join(traceback.format_exception(error, limit=-8))
    return {"rule": rule, "message": text[:500], "log": log[-_TRACEBACK_CHARS:]}


class _Run:
    """One plan: the calls of one workload, in order."""

    def __init__(self, entry: Entry, plan: dict[str, Any], fds: list[int]) -> None:
        self._entry, self._plan = entry, plan
        layout = regions.Layout.parse(plan["inputs"])
        self._sets = [regions.attach(fd, layout.total_bytes) for fd in fds[:-1]]
        outputs = regions.Layout.parse(plan["outputs"])
        self._stride = outputs.total_bytes
        self._out = regions.attach(fds[-1], self._stride * len(plan["calls"]))
        self._slots = {slot.name: slot for slot in outputs.slots}
        self._tensors = [
            {slot.name: regions.view(region, slot) for slot in layout.slots} for region in self._sets
        ]
        self._returned = [name for name in self._slots if name not in plan["mutates"].values()]
        self._wanted = [self._slots[name] for name in self._returned]

    def reply(self) -> dict[str, Any]:
        """Run every call, or stop at the first that fails, misbehaves, or would start after ``soft_s``."""
        times: list[int] = []
        stop_ns = _clock_ns() + int(self._plan.get("soft_s", 1e9) * 1e9)
        gc.collect()
        gc.disable()
        for index, chosen in enumerate(self._plan["calls"]):
            taken, problem = self._call(index, self._tensors[chosen])
            if problem is not None:
                return {"times_ns": times, "call": index} | problem
            times.append(taken)
            if _clock_ns() > stop_ns:
                break
        gc.enable()
        return {"times_ns": times}

    def _call(self, index: int, tensors: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
        private = {name: tensors[name].clone() for name in self._plan["mutates"]}
        scalars = self._plan["scalars"]
        args = [private.get(name, tensors.get(name, scalars.get(name))) for name in self._plan["order"]]
        buffers = self._buffers() if self._plan["destination_passing"] else []
        _seed((self._plan["call_seed"] + _GOLDEN * index) % 2**63)
        entry = self._entry
        args += buffers
        try:
            start = _clock_ns()
            returned = entry(*args)
            end = _clock_ns()
        except BaseException as error:  # noqa: BLE001 (whatever a contestant raises is data)
            return 0, {"failure": _failure(error)}
        wanted = self._wanted
        problem, found = results.collect(returned, buffers, wanted, self._plan["destination_passing"])
        found |= {result: private[source] for source, result in self._plan["mutates"].items()}
        ranges = [results.memory_of(tensor) for tensor in [*tensors.values(), *private.values()]]
        problem = problem or results.inspect(found, self._slots, ranges, frozenset(self._plan["mutates"].values()))
        if problem is not None:
            return 0, {"problem": problem}
        for name, tensor in found.items():
            regions.view(self._out, self._slots[name], index * self._stride).copy_(tensor)
        return end - start, None

    def _buffers(self) -> list[Any]:
        """Output buffers full of 0xFF: NaN in every float type, -1 in every integer."""
        buffers = []
        for name in self._returned:
            slot = self._slots[name]
            buffer = torch.empty(slot.shape, dtype=regions.torch_dtype(slot.dtype))
            regions.bytes_of(buffer).fill_(1 if slot.dtype == "bool" else 0xFF)
            buffers.append(buffer)
        return buffers

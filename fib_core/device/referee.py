"""The referee process: inputs, reference, comparison. No contestant's code enters it; it never learns who is tested.

In: a definition, workloads, a secret seed; then ``prepare``, ``mutated``, ``judge``, ``prepare_draws`` per contestant
and workload. Out: regions with fresh inputs, verdicts. Errors of data or machine are answered as such, never as
verdicts.
"""

import os
import traceback
from typing import Any

import torch

from fib_core.device import sandbox
from fib_core.device.bout import Bout
from fib_core.device.case import Case
from fib_core.device.channel import Channel, close_all
from fib_core.device.draw_bout import DrawBout
from fib_core.errors import ContractError
from schemas.definition import Definition
from schemas.workload import Workload


def main(channel: Channel, log_fd: int, options: dict[str, Any]) -> None:
    """Serve one visit; returns when the supervisor hangs up."""
    sandbox.redirect_output(log_fd)
    sandbox.hide_memory()
    bench: Bench | None = None
    while True:
        message, _ = channel.receive()
        fds: list[int] = []
        reply: dict[str, Any] = {}
        try:
            if message["command"] == "open":
                bench = Bench(message)
            else:
                assert bench is not None, "a visit begins with open"
                reply, fds = bench.answer(message)
        except ContractError as error:
            reply = {"error": "bad_input", "message": str(error)}
        except (OSError, MemoryError, RuntimeError) as error:  # torch reports failed allocations as RuntimeError
            reply = {"error": "referee", "message": f"{error}\n{traceback.format_exc(limit=-4)}"[:4000]}
        channel.send(reply, fds)
        close_all(fds)


class Bench:
    """All cases of a visit (inputs and expected outputs, kept between contestants) and the bout in progress."""

    def __init__(self, message: dict[str, Any]) -> None:
        definition = Definition.model_validate(message["definition"])
        workloads = [Workload.model_validate(body) for body in message["workloads"]]
        self._options: dict[str, Any] = message["options"]
        self._cases = [Case(definition, workload, self._options) for workload in workloads]
        self._bout: Bout | DrawBout | None = None

    def answer(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        """Reply and the descriptors that go with it."""
        # Contestants are idle now. References use every core; comparisons are too short to gain from it.
        preparing = message["command"].startswith("prepare")
        torch.set_num_threads(len(os.sched_getaffinity(0)) if preparing else 1)
        if preparing:
            case = self._cases[message["workload"]]
            self._bout = None  # the regions of the last bout go before new ones come
            self._make_room(case)
            kind = DrawBout if message["command"] == "prepare_draws" else Bout
            self._bout = kind(case, message["salt"])
            return {"plan": self._bout.plan}, self._bout.fds
        assert self._bout is not None, "judge before prepare"
        if message["command"] == "mutated":
            mutated = self._bout.mutated()
            return (mutated.as_json() if mutated else {}), []
        return self._bout.judge(message), []

    def _make_room(self, wanted: Case) -> None:
        """Inputs can be built again from the seed; keep them only while they fit."""
        kept = sum(case.kept_bytes for case in self._cases)
        for case in self._cases:
            if case is not wanted and kept > self._options["keep_bytes"]:
                kept -= case.kept_bytes
                case.forget()

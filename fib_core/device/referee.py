"""The referee process: inputs, reference, comparison. No contestant's code enters it; it never learns who is tested.

In: a definition, workloads, a secret seed; then ``meet`` per contestant's process and ``duel`` per workload. Out:
verdicts with samples. Errors of data or machine are answered as such, never as verdicts.
"""

import os
import traceback
from typing import Any

import torch

from fib_core.device import sandbox, timer_test, wire
from fib_core.device.arena import Arena, ArenaForged, ArenaGone, ArenaLate
from fib_core.device.bout import Bout
from fib_core.device.case import Case
from fib_core.device.channel import Channel, close_all
from fib_core.device.draw_bout import DrawBout
from fib_core.device.faults import MachineFailure
from fib_core.device.memory import Opened
from fib_core.device.verdict import cheated
from fib_core.errors import ContractError
from schemas.definition import Definition
from schemas.workload import Workload

_LEAVE_S = 1.0


def main(channel: Channel, log_fd: int, options: dict[str, Any]) -> None:
    """Serve one visit; returns when the supervisor hangs up."""
    sandbox.redirect_output(log_fd)
    sandbox.hide_memory()
    bench: Bench | None = None
    while True:
        message, fds = channel.receive()
        reply: dict[str, Any] = {}
        try:
            if message["command"] == "open":
                bench = Bench(message)
            else:
                assert bench is not None, "a visit begins with open"
                reply = bench.answer(message, fds)
        except ContractError as error:
            reply = {"error": "bad_input", "message": str(error)}
        # Torch reports failed allocations as RuntimeError.
        except (OSError, MemoryError, RuntimeError, MachineFailure) as error:
            reply = {"error": "referee", "message": f"{error}\n{traceback.format_exc(limit=-4)}"[:4000]}
        channel.send(reply)


class Bench:
    """All cases of a visit (inputs and expected outputs, kept between contestants) and the contestant in the ring."""

    def __init__(self, message: dict[str, Any]) -> None:
        definition = Definition.model_validate(message["definition"])
        workloads = [Workload.model_validate(body) for body in message["workloads"]]
        self._options: dict[str, Any] = message["options"]
        self._cases = [Case(definition, workload, self._options) for workload in workloads]
        self._arena: Arena | None = None
        self._lasting: list[Opened] = []
        if self._options["device"] != "cpu":
            self._prepare()

    def answer(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Reply to ``meet``, ``self_test`` or ``duel``."""
        if message["command"] == "meet":
            if self._arena is not None:
                self._arena.close()
            self._let_go()
            self._arena = Arena(fds[0], message["pid"])
            return {}
        close_all(fds)
        if message["command"] == "self_test":
            assert self._arena is not None, "self_test before meet"
            return timer_test.run(self._arena, self._options["device"], self._options["timer"])
        case = self._cases[message["workload"]]
        self._make_room(case)
        # The contestant is idle: references use every core; comparisons are too short to gain from it.
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        entered = case, message["salt"], message["destination"]
        bout = DrawBout(*entered, again=message["again"]) if message["draws"] else Bout(*entered)
        facts: dict[str, Any] = {"precision": case.precision}
        if self._options["examine"] and not message["draws"]:
            facts["survivors"] = case.survivors()
        torch.set_num_threads(1)
        return self._duel(bout, message["limit_s"]) | facts

    def _duel(self, bout: Bout, limit_s: float) -> dict[str, Any]:
        assert self._arena is not None, "duel before meet"
        ended = None
        try:
            verdict = bout.run(self._arena, limit_s)
            body = verdict.as_json()
            if not bout.left:
                self._arena.ask(wire.end(), _LEAVE_S)
        except ArenaForged as error:
            body = cheated("forged_result", str(error)).as_json()
        except ArenaLate:
            ended, body = "timeout", {}
        except ArenaGone:
            ended, body = "gone", {}
        finally:
            self._lasting += bout.ground.close()
        figures: dict[str, Any] = {"draws": None, "power": None, "coarse_power": None}
        if isinstance(bout, DrawBout):
            figures = {"draws": bout.draws, "power": bout.power, "coarse_power": bout.coarse_power}
        figures["first_ns"] = bout.first_ns
        figures |= {"times_ns": bout.times_ns, "second_ns": bout.second_ns, "spent_s": bout.spent_s}
        return body | figures | {"log": bout.log, "ended": ended}

    def _prepare(self) -> None:
        """Work while the contestants' CUDA contexts come up; nobody is timed yet. What will not fit waits its turn."""
        for case in self._cases:
            if sum(one.kept_bytes for one in self._cases) <= self._options["keep_bytes"] // 2:
                case.prepare()

    def _let_go(self) -> None:
        """Who had this memory open is gone."""
        for opened in self._lasting:
            opened.close()
        self._lasting = []

    def _make_room(self, wanted: Case) -> None:
        """Inputs can be built again from the seed; keep them only while they fit."""
        kept = sum(case.kept_bytes for case in self._cases)
        for case in self._cases:
            if case is not wanted and kept > self._options["keep_bytes"]:
                kept -= case.kept_bytes
                case.forget()

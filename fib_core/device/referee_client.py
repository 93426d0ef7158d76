"""The worker's side of the referee: introduces contestants, passes verdicts on. Torch-free.

In: indices of workloads. Out: verdicts with samples. Raises ``ContractError`` for bad data and a
:class:`~fib_core.device.faults.MachineFailure` if the referee dies; never blames a contestant for either.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fib_core.device.channel import close_all
from fib_core.device.child import Child, Death
from fib_core.device.faults import RefereeDied, RefereeFailed
from fib_core.device.zygote_client import Zygote
from fib_core.errors import ContractError
from schemas.evaluation import Timer
from schemas.visit import VisitRequest

_ANSWER_S = 900.0  # a reference in plain Python may take minutes
_KEEP_BYTES = 2 * 2**30


@dataclass(frozen=True)
class Duel:
    """What the referee is asked to do with the contestant in the ring."""

    workload: int
    salt: str
    destination: bool
    limit_s: float
    draws: bool = False
    again: bool = False
    """With ``draws``: the opening once more, in another process."""


class Referee:
    """One visit's referee."""

    def __init__(self, zygote: Zygote, request: VisitRequest, device: str, timer: Timer) -> None:
        self._device, self._timer = device, timer
        self._child = Child(zygote, "referee", {})
        self._request = request
        self.samples = any(rule.kind == "samples" for rule in request.definition.policy.outputs.values())

    def open(self) -> None:
        """Hand over what it needs to know, once."""
        request = self._request
        options = {
            "seed": request.seed,
            "blob_root": request.blob_root,
            "warmup_count": request.warmup_count,
            "sample_count": request.sample_count,
            "input_sets": request.input_sets,
            "sampling_draws": request.sampling_draws,
            "incumbent_errors": request.incumbent_errors,
            "keep_bytes": _KEEP_BYTES,
            "examine": request.stage == "screen",
            "device": self._device,
            "timer": self._timer,
        }
        workloads = [workload.model_dump(mode="json", exclude_unset=True) for workload in request.workloads]
        definition = request.definition.public_json()
        self._ask({"command": "open", "definition": definition, "workloads": workloads, "options": options})

    @property
    def pid(self) -> int:
        """For tests."""
        return self._child.pid

    def meet(self, fd: int, pid: int) -> None:
        """Hand over the referee's end of the channel to the driver in process ``pid``."""
        self._ask({"command": "meet", "pid": pid}, [fd])

    def duel(self, order: Duel, opponent: Child) -> dict[str, Any]:
        """All calls of one workload; the opponent's output is drained and its memory bounded meanwhile."""
        return self._ask({"command": "duel"} | asdict(order), watched=opponent)

    def test_timer(self, opponent: Child) -> dict[str, Any]:
        """Have the driver in a process of ours time a call of known duration."""
        return self._ask({"command": "self_test"}, watched=opponent)

    def close(self) -> None:
        """Dismiss it."""
        self._child.end()

    def _ask(
        self, message: dict[str, Any], fds: Sequence[int] = (), watched: Child | None = None
    ) -> dict[str, Any]:
        try:
            reply, received = self._child.ask(message, _ANSWER_S, fds, watched)
        except Death as death:
            raise RefereeDied(f"the referee is gone ({death}); log: {self._child.log[-2000:]}") from death
        close_all(received)
        if reply.get("error") == "bad_input":
            raise ContractError(reply["message"])
        if "error" in reply:
            raise RefereeFailed(reply["message"])
        return reply

"""The worker's side of the referee: prepares regions, passes verdicts on. Torch-free.

In: indices of workloads. Out: plans, descriptors, verdicts. Raises ``ContractError`` for bad data and a
:class:`~fib_core.device.faults.MachineFailure` if the referee dies; never blames a contestant for either.
"""

from typing import Any

from fib_core.device.child import Child, Death
from fib_core.device.faults import RefereeDied, RefereeFailed
from fib_core.device.verdict import Verdict
from fib_core.device.zygote_client import Zygote
from fib_core.errors import ContractError
from schemas.visit import VisitRequest

_ANSWER_S = 900.0  # a reference in plain Python may take minutes
_KEEP_BYTES = 2 * 2**30


class Referee:
    """One visit's referee."""

    def __init__(self, zygote: Zygote, request: VisitRequest) -> None:
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
        }
        workloads = [workload.model_dump(mode="json", exclude_unset=True) for workload in request.workloads]
        definition = request.definition.public_json()
        self._ask({"command": "open", "definition": definition, "workloads": workloads, "options": options})

    @property
    def pid(self) -> int:
        """For tests."""
        return self._child.pid

    def prepare(self, workload: int, salt: str, draws: bool = False) -> tuple[dict[str, Any], list[int]]:
        """Plan of the calls and the fresh regions (the caller closes them)."""
        command = "prepare_draws" if draws else "prepare"
        reply, fds = self._ask({"command": command, "workload": workload, "salt": salt})
        return reply["plan"], fds

    def judge(self, facts: dict[str, Any]) -> tuple[Verdict, dict[str, Any]]:
        """Verdict on the outputs that lie in the regions of the last :meth:`prepare`, and the sampling figures."""
        reply, _ = self._ask({"command": "judge"} | facts)
        return Verdict.parse(reply), reply

    def mutated(self) -> Verdict | None:
        """CHEATED if the inputs of the last :meth:`prepare` were written to."""
        reply, _ = self._ask({"command": "mutated"})
        return Verdict.parse(reply) if reply else None

    def end(self) -> None:
        """Dismiss it."""
        self._child.end()

    def _ask(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        try:
            reply, fds = self._child.ask(message, _ANSWER_S)
        except Death as death:
            raise RefereeDied(f"the referee is gone ({death}); log: {self._child.log[-2000:]}") from death
        if reply.get("error") == "bad_input":
            raise ContractError(reply["message"])
        if "error" in reply:
            raise RefereeFailed(reply["message"])
        return reply, fds

"""One contestant's way through the workloads of a visit: fork, load, run, have it judged. Torch-free.

In: a request, the referee, a zygote. Out: one :class:`Outcome` per workload. A contestant's death costs its own
verdicts only; a referee's or zygote's death is raised.
"""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fib_core.device.channel import close_all
from fib_core.device.child import Child, Death
from fib_core.device.referee_client import Referee
from fib_core.device.verdict import Verdict, of_death, of_failure, of_problem
from fib_core.device.zygote_client import Zygote
from fib_core.errors import BuildError
from schemas.evaluation import Status
from schemas.visit import Contestant, VisitRequest

_DRAW_SHARE = 0.25  # of the visit limit, soft, per workload: drawing may use this much, outside the visit's own budget


@dataclass(frozen=True)
class Outcome:
    """What one evaluation will say."""

    verdict: Verdict
    times_us: tuple[float, ...] = ()
    log: str = ""
    draws: int | None = None
    power: float | None = None


@dataclass
class _Budget:
    """Time left to one contestant; the referee's work does not count."""

    left_s: float
    spent: bool = field(default=False)


class Contest:
    """Runs one contestant; makes fresh processes as needed."""

    def __init__(self, zygote: Zygote, referee: Referee, request: VisitRequest, core: int | None) -> None:
        self._zygote, self._referee, self._request, self._core = zygote, referee, request, core
        self._child: Child | None = None
        self._budget = _Budget(request.limits.visit_s)

    def run(self, contestant: Contestant, salt: str, cache_dir: Path) -> list[Outcome]:
        """Outcomes in the order of the workloads."""
        outcomes: list[Outcome] = []
        try:
            for index in range(len(self._request.workloads)):
                if self._budget.spent:
                    reason = "not reached: an earlier workload of this visit used up the time limit"
                    outcomes.append(Outcome(Verdict(Status.TIMEOUT, "visit_limit", reason)))
                    continue
                fatal, outcome = self._workload(contestant, index, f"{salt}/{index}", cache_dir)
                outcomes.append(outcome)
                if fatal:
                    return outcomes + [outcome] * (len(self._request.workloads) - len(outcomes))
        finally:
            self._discard()
        return outcomes

    def _workload(self, contestant: Contestant, index: int, salt: str, cache_dir: Path) -> tuple[bool, Outcome]:
        """One workload; True means that the contestant cannot be loaded, so that all its verdicts are this one."""
        plan, fds = self._referee.prepare(index, salt)
        try:
            if self._child is None:
                failed = self._load(contestant, cache_dir)
                if failed is not None:
                    return not self._budget.spent, failed
            outcome = self._calls(contestant, index, plan, fds)
        finally:
            close_all(fds)
        if outcome.verdict.status is Status.PASSED and self._request.sampling_draws and self._referee.samples:
            outcome = self._draws(contestant, index, salt, outcome)
        return False, outcome

    def _load(self, contestant: Contestant, cache_dir: Path) -> Outcome | None:
        limits = self._request.limits
        options = {"core": self._core, "memory_bytes": limits.memory_bytes}
        self._child = Child(self._zygote, "candidate", options, limits.memory_bytes)
        message = {
            "command": "load",
            "solution": contestant.solution.public_json(),
            "solution_digest": contestant.solution_digest,
            "cache_dir": str(cache_dir),
        }
        reply = self._ask(message, self._budget)
        if isinstance(reply, Outcome):
            return reply
        if "failure" in reply:
            return self._failed(of_failure(reply["failure"]), reply["failure"].get("log", ""))
        return None

    def _calls(self, contestant: Contestant, index: int, plan: dict[str, Any], fds: list[int]) -> Outcome:
        passing = contestant.solution.spec.destination_passing_style
        reply = self._ask({"command": "run", "plan": plan | {"destination_passing": passing}}, self._budget, fds)
        if isinstance(reply, Outcome):
            return reply
        try:
            if reply.keys() == {"times_ns"} and len(reply["times_ns"]) != len(plan["calls"]):
                raise ValueError(f"{len(reply['times_ns'])} times for {len(plan['calls'])} calls")
            return self._judged(reply)
        except (KeyError, TypeError, ValueError) as error:
            return self._failed(Verdict(Status.RUNTIME_ERROR, "protocol", f"the process answered nonsense: {error!r}"))

    def _draws(self, contestant: Contestant, index: int, salt: str, before: Outcome) -> Outcome:
        """The distribution test; fewer draws than asked for if the contestant is slow, and the power says so."""
        plan, fds = self._referee.prepare(index, salt, draws=True)
        soft_s = self._request.limits.visit_s * _DRAW_SHARE
        passing = contestant.solution.spec.destination_passing_style
        message = {"command": "run", "plan": plan | {"destination_passing": passing, "soft_s": soft_s}}
        try:
            reply = self._ask(message, _Budget(soft_s + self._request.limits.visit_s), fds)
        finally:
            close_all(fds)
        if isinstance(reply, Outcome):
            return reply
        outcome = self._judged(reply)
        return replace(outcome, times_us=before.times_us)

    def _judged(self, reply: dict[str, Any]) -> Outcome:
        if "failure" in reply:
            return self._failed(of_failure(reply["failure"]), reply["failure"].get("log", ""))
        if "problem" in reply:
            verdict = of_problem(reply["problem"], int(reply["call"]))
            return Outcome(self._referee.mutated() or verdict, log=self._log())
        times_us = tuple(float(int(taken)) / 1e3 for taken in reply["times_ns"])
        verdict, figures = self._referee.judge({"calls": len(times_us)})
        return Outcome(verdict, times_us, self._log(), figures.get("draws"), figures.get("power"))

    def _ask(
        self, message: dict[str, Any], budget: _Budget, fds: list[int] | None = None
    ) -> dict[str, Any] | Outcome:
        """Reply, or the outcome of a death. The clock of the contestant runs only in here."""
        assert self._child is not None
        started = time.monotonic()
        try:
            reply, received = self._child.ask(message, max(budget.left_s, 0.001), fds or [])
            close_all(received)
        except Death as death:
            self._budget.spent |= death.cause == "timeout"
            return self._failed(of_death(death.cause, death.detail))
        finally:
            budget.left_s -= time.monotonic() - started
        return reply

    def _failed(self, verdict: Verdict, log: str = "") -> Outcome:
        """A failure ends the process: the next workload meets a fresh one."""
        outcome = Outcome(verdict, log=(self._log() + log))
        self._discard()
        return outcome

    def _log(self) -> str:
        return self._child.log if self._child is not None else ""

    def _discard(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


def not_compiled(request: VisitRequest, error: BuildError) -> list[Outcome]:
    """COMPILE_ERROR for every workload, with the compiler's own words."""
    outcome = Outcome(Verdict(Status.COMPILE_ERROR, "build", str(error)), log=error.log)
    return [outcome] * len(request.workloads)

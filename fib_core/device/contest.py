"""One contestant's way through the workloads of a visit: fork, load, run, have it judged. Torch-free.

In: a request, the referee, a zygote. Out: one :class:`Outcome` per workload. A contestant's death costs its own
verdicts only; a referee's or zygote's death is raised.
"""

import signal
import socket
import time
from dataclasses import asdict, replace
from typing import Any

from fib_core.device.channel import close_all
from fib_core.device.child import Child, Death
from fib_core.device.floor import RULE, Floors
from fib_core.device.outcome import Budget, Newcomer, Outcome
from fib_core.device.referee_client import Duel, Referee
from fib_core.device.seating import Places, Seat
from fib_core.device.verdict import Verdict, cheated, of_death, of_failure
from fib_core.device.zygote_client import Zygote
from schemas.evaluation import Status
from schemas.visit import Contestant, VisitRequest

_ASKED_TWICE = ("clock", "hidden_time", RULE)
_KILLED = f"signal {int(signal.SIGKILL)}"


class Contest:
    """Runs one contestant; makes fresh processes as needed."""

    def __init__(
        self, zygote: Zygote, referee: Referee, request: VisitRequest, seat: Seat, floors: Floors,
        kept: Child | None = None,
    ) -> None:  # fmt: skip
        self._zygote, self._referee, self._request, self._seat = zygote, referee, request, seat
        self._child: Child | None = None
        self._kept, self._floors = kept, floors
        self._started: Child | None = None
        self._budget = Budget(request.limits.visit_s)
        self._readable = False
        self._served, self._compared, self._newcomer = 0, False, Newcomer()
        self.enforced: tuple[str, ...] = ()

    def start(self, places: Places) -> None:
        """Fork ahead of time: what a fresh process does for itself (a CUDA context) is done before anybody's turn."""
        self._started = self._fork(places)

    def run(self, contestant: Contestant, salt: str, places: Places) -> list[Outcome]:
        """Outcomes in the order of the workloads."""
        outcomes: list[Outcome] = []
        try:
            for index in range(len(self._request.workloads)):
                if self._budget.spent:
                    reason = "not reached: an earlier workload of this visit used up the time limit"
                    outcomes.append(Outcome(Verdict(Status.TIMEOUT, "visit_limit", reason)))
                    continue
                fatal, outcome = self._workload(contestant, index, f"{salt}/{index}", places)
                outcomes.append(outcome)
                if fatal:
                    return outcomes + [outcome] * (len(self._request.workloads) - len(outcomes))
        finally:
            if self._request.mode == "isolated":
                self._discard()
            self._started = self._ended(self._started)
            places.clear()
        return outcomes

    def close(self) -> None:
        """End what is left: a process that never had its turn, or one that a broken visit leaves to nobody."""
        self._started, self._kept = self._ended(self._started), self._ended(self._kept)
        self._discard()

    @staticmethod
    def _ended(child: Child | None) -> None:
        if child is not None:
            child.end()

    def keep(self) -> Child | None:
        """The process as it is after a run in persistent mode, if it lives; it is the caller's to end."""
        kept, self._child = self._child, None
        return kept

    def _workload(self, contestant: Contestant, index: int, salt: str, places: Places) -> tuple[bool, Outcome]:
        """One workload; True means that the contestant cannot be loaded, so that all its verdicts are this one.

        What the clocks alone say is asked twice, in fresh processes: a busy host must not bar an honest kernel. What
        fails in a process that was kept is asked again in a fresh one.
        """
        used = self._kept is not None or self._served > 0
        fatal, outcome = self._attempt(contestant, index, salt, places)
        verdict = outcome.verdict
        suspected = verdict.status is Status.CHEATED and verdict.rule in _ASKED_TWICE
        suspected |= verdict.rule == "signal" and verdict.reason.endswith(_KILLED)  # by itself or the host: who knows
        spoiled = self._request.mode == "persistent" and used and verdict.status is not Status.PASSED
        if (suspected or spoiled) and not self._budget.spent:
            self._discard()
            fatal, again = self._attempt(contestant, index, f"{salt}/again", places)
            outcome = again if spoiled or again.verdict.rule != verdict.rule else outcome
        if outcome.verdict.rule == RULE:
            self._discard()  # the referee listens to one process at a time
            self._floors.check_timer(self._referee, self._fork(places))
        return fatal, outcome

    def _attempt(self, contestant: Contestant, index: int, salt: str, places: Places) -> tuple[bool, Outcome]:
        if self._child is None:
            failed = None if self._reunited() else self._load(contestant, places)
            if failed is not None:
                return not self._budget.spent, failed
        self._served += 1
        passing = contestant.solution.spec.destination_passing_style
        outcome = self._duel(Duel(index, salt, passing, self._budget.left_s))
        if outcome.verdict.status is Status.PASSED and self._request.sampling_draws and self._referee.samples:
            order = Duel(index, salt, passing, self._request.limits.visit_s, draws=True)
            outcome = outcome.drawn(self._drawn(contestant, order, places))
        return False, self._floors.judged(index, outcome)

    def _drawn(self, contestant: Contestant, order: Duel, places: Places) -> Outcome:
        """The distribution test. A contestant's first is made in a process that did nothing before, and begins again
        in another one: only so does a seed of its own show whose state moves on inside a process.
        """
        if self._compared:
            return self._duel(order)
        self._compared = True
        outcome = self._afresh(contestant, order, places)
        if outcome.verdict.status is not Status.PASSED:
            return outcome
        return replace(outcome, verdict=self._afresh(contestant, replace(order, again=True), places).verdict)

    def _afresh(self, contestant: Contestant, order: Duel, places: Places) -> Outcome:
        """A duel in a fresh process, whose start we asked for: not from the contestant's time."""
        self._discard()
        left_s, self._budget.left_s = self._budget.left_s, self._request.limits.visit_s
        failed = self._load(contestant, places)
        self._budget.left_s = left_s
        return failed or self._duel(order)

    def _fork(self, places: Places) -> Child:
        places.clear()
        memory_bytes = self._request.limits.memory_bytes
        options = asdict(self._seat) | {"memory_bytes": memory_bytes, "scratch": str(places.scratch)}
        return Child(self._zygote, "candidate", options, memory_bytes)

    def _reunited(self) -> bool:
        """Bring a kept process before this visit's referee."""
        self._child, self._kept = self._kept, None
        if self._child is None:
            return False
        met = self._meet(self._child)
        if isinstance(met, Outcome):
            return False
        self.enforced = tuple(met["enforced"])
        return True

    def _load(self, contestant: Contestant, places: Places) -> Outcome | None:
        child = self._child = self._started or self._fork(places)
        self._started = None
        met = self._meet(child)
        if isinstance(met, Outcome):
            return met
        self.enforced = tuple(met["enforced"])
        self._readable = self._zygote.native_code.changed_in(child.pid) is None
        message = {
            "command": "load",
            "solution": contestant.solution.public_json(),
            "solution_digest": contestant.solution_digest,
            "cache_dir": str(places.built),
        }
        started = time.monotonic()
        reply = self._ask(message)
        if isinstance(reply, Outcome):
            return reply
        self._newcomer = Newcomer.loaded(places.compile_s, time.monotonic() - started)
        if "failure" in reply:
            return self._failed(of_failure(reply["failure"]), reply["failure"].get("log", ""))
        return None

    def _meet(self, child: Child) -> dict[str, Any] | Outcome:
        """Referee and driver get their channel before any of the contestant's code is there."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            self._referee.meet(ours.fileno(), child.pid)
            return self._ask({"command": "meet"}, [theirs.fileno()])

    def _duel(self, order: Duel) -> Outcome:
        """One workload, call by call between referee and driver; the supervisor only looks after the process."""
        child = self._child
        assert child is not None
        try:
            child.tell({"command": "serve"})
        except Death as death:
            return self._failed(of_death(death.cause, death.detail))
        reply = self._referee.duel(order, child)
        cold = self._newcomer.meets(reply["first_ns"])
        if not order.draws:  # drawing has a budget of its own
            self._budget.left_s -= reply["spent_s"]
        if reply["ended"] is not None:
            return self._broken_off(child, reply["ended"])
        last = order.workload + 1 == len(self._request.workloads)
        verdict = self._tampering(child, last) or Verdict.parse(reply)
        times_us, second_us = (tuple(taken / 1e3 for taken in reply[name]) for name in ("times_ns", "second_ns"))
        if verdict.status in (Status.RUNTIME_ERROR, Status.CHEATED):
            return replace(self._failed(verdict, reply["log"]), times_us=times_us, second_us=second_us, cold=cold)
        log = self._log()
        self._ask({})  # the process has left the workload, or is gone: its verdict stands
        survivors = reply.get("survivors")
        return Outcome(
            verdict, times_us, log, reply["draws"], reply["power"], second_us,
            tuple(survivors) if survivors is not None else None, reply["precision"], reply["coarse_power"], cold,
        )  # fmt: skip

    def _tampering(self, child: Child, whole: bool) -> Verdict | None:
        """Native code that measures, changed since the fork; not asked where the host does not let us look."""
        changed = self._zygote.native_code.changed_in(child.pid, whole) if self._readable else None
        return cheated("code_changed", f"the process has changed {changed}") if changed else None

    def _broken_off(self, child: Child, ended: str) -> Outcome:
        timeout = ended == "timeout"
        self._budget.spent |= timeout
        death = child.fate("timeout" if timeout else "")
        return self._failed(of_death(death.cause, death.detail))

    def _ask(self, message: dict[str, Any], fds: list[int] | None = None) -> dict[str, Any] | Outcome:
        """Reply, or the outcome of a death. An empty message only waits for what was asked before."""
        assert self._child is not None
        budget, started = self._budget, time.monotonic()
        try:
            if message:
                self._child.tell(message, fds or [])
            reply, received = self._child.reply(max(budget.left_s, 0.001))
            close_all(received)
        except Death as death:
            budget.spent |= death.cause == "timeout"
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

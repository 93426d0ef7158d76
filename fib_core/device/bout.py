"""One contestant against one workload, seen from the referee: call by call, every output judged before the next call.

In: a case (definition, workload, seed), the channel to the candidate's driver. Out: a verdict with samples, or how the
conversation ended. The contestant never sees an input before the output of the call before was handed over.
"""

import json
import secrets
from collections.abc import Sequence
from typing import Any

import torch

from fib_core.device import clocks, device_clocks, ranks, sampling, wire
from fib_core.device.arena import Arena, Exchange
from fib_core.device.case import Case, on_host
from fib_core.device.clocks import Turn
from fib_core.device.compare import Finding, Incumbent, compare
from fib_core.device.faults import RefereeFailed
from fib_core.device.ground import Ground
from fib_core.device.inputs import secret_seed
from fib_core.device.review import Review
from fib_core.device.verdict import Verdict, cheated, merge_figures, of_failure, of_problem
from schemas.evaluation import ErrorFigures, Status

_NO_SOFT_LIMIT_S = 1e9
# By the time of the last call: how many calls on old contents come before the next.
_PRIMES = ((200_000, 2), (2_000_000, 1))


class Bout:
    """Fresh memory for one contestant and one workload."""

    def __init__(self, case: Case, salt: str, destination: bool) -> None:
        self.case, self._salt = case, salt
        first = case.inputs(0)
        static = {name: first[name] for name in case.definition.static}
        self.ground = Ground(case, static, first, destination)
        self._errors: dict[str, ErrorFigures] = {}
        self._exchanges: list[Exchange] = []
        self._turns: list[Turn] = []
        self._standings: list[Any] = []
        self._review = Review(self.ground.output, self.ground.frame)
        self._kept: tuple[int, Any] | None = None
        self.log = ""
        self.left = False
        """Has the driver been told that this workload is over?"""
        self.prepare()

    def prepare(self) -> None:
        """What takes time, before the contestant's clock runs: expected outputs and memory."""
        self.case.prepare()
        self.ground.open()

    def run(self, arena: Arena, limit_s: float) -> Verdict:
        """All calls, or up to the first that is wrong. Raises the arena's exceptions."""
        arena.tell(self.ground.packet, self.ground.fds)
        places = (0, 0)
        for number, chosen in enumerate(self.case.calls):
            if self._kept is not None and not self.ground.on_device and self.ground.output_differs(*self._kept):
                return _changed(number - 1)
            self.ground.stage(self.case.inputs(chosen))
            before = places
            # Never the last ones: stale contents must not look right, and the driver compares with the last output.
            steps = [1 + secrets.randbelow(self.ground.blocks - 1) for _ in places]
            places = (places[0] + steps[0]) % self.ground.blocks, (places[1] + steps[1]) % self.ground.blocks
            turn = self._on_device if self.ground.on_device else self._on_host
            verdict = turn(arena, number, before, places, limit_s) or self._looked_at(number, chosen, *places)
            if verdict is not None:
                return verdict
        return self._ended(arena, limit_s)

    def _on_host(
        self, arena: Arena, number: int, before: tuple[int, int], places: tuple[int, int], limit_s: float
    ) -> Verdict | None:
        """Short calls are repeated on contents that were seen: after a pause the first call pays for cold caches."""
        last_ns = self._turns[-1].elapsed_ns if self._turns else 0
        count = next((count for bound_ns, count in _PRIMES if 0 < last_ns < bound_ns), 0)
        rest = arena.rest()
        primed = self._ask(arena, wire.prime(number, count, self._bases(*before)[:2]), limit_s)
        verdict = self._answered(primed.answer, number, before[0])
        if verdict is not None:
            return verdict
        order = self._order(number, places, self.ground.staged_bytes)
        called = self._ask(arena, order, limit_s, self.ground.hand_over(*places))
        verdict = self._answered(called.answer, number, places[0])
        if verdict is None:
            self._turns.append(Turn(rest, primed, called, arena.rest()))
            if not self.ground.as_returned(places[1], called.answer.digest):
                return _changed(number)
        return verdict

    def _on_device(
        self, arena: Arena, number: int, before: tuple[int, int], places: tuple[int, int], limit_s: float
    ) -> Verdict | None:
        """A device is kept busy by its own clock and needs no priming."""
        self.ground.fill(*places)
        called = self._ask(arena, self._order(number, places), limit_s)
        return self._answered(called.answer, number, places[0])

    def _order(self, number: int, places: tuple[int, int], staged: tuple[int, int] = (0, 0)) -> bytes:
        return wire.go(number, 1, self._bases(*places), self._seed(number), _NO_SOFT_LIMIT_S, staged)

    def _ask(self, arena: Arena, order: bytes, limit_s: float, fds: Sequence[int] = ()) -> Exchange:
        exchange = arena.ask(order, limit_s - self.spent_s, fds)
        self._exchanges.append(exchange)
        return exchange

    @property
    def spent_s(self) -> float:
        """Wall time between "go" and "done" so far: what the contestant is charged."""
        return sum(exchange.wall_ns for exchange in self._exchanges) / 1e9

    @property
    def times_ns(self) -> list[int]:
        """The time of every call that ended, by the clock that the Job names."""
        timed = [item.answer for item in self._exchanges if item.answer.result == wire.OK]
        if not self.ground.on_device:
            return [answer.elapsed_ns for answer in timed]
        return [device_clocks.primary_ns(answer, self.case.options["timer"]) for answer in timed]

    @property
    def first_ns(self) -> int | None:
        """Around the first call of all, which nothing primed: the host's clock, or the device's where that saw more."""
        first = next((item.answer for item in self._exchanges if item.answer.result == wire.OK), None)
        return max(first.elapsed_ns, *self.times_ns[:1]) if first else None

    @property
    def second_ns(self) -> list[int]:
        """On a device: the same calls by events."""
        timed = [item.answer for item in self._exchanges if item.answer.result == wire.OK]
        return [answer.event_ns for answer in timed] if self.ground.on_device else []

    def _bases(self, block: int, output_block: int) -> tuple[int, int, int]:
        size = self.ground.output.total_bytes
        return block * self.ground.fresh.total_bytes, output_block * size, size

    def _seed(self, number: int) -> int:
        return secret_seed(self.case.options["seed"], "calls", self._salt, self.case.workload.digest, number)

    def _answered(self, answer: wire.Answer, number: int, block: int) -> Verdict | None:
        """What the driver alone can tell."""
        if answer.changed:
            return _changed(number - 1)
        if answer.result == wire.MODE_ACTIVE:
            return cheated("torch_mode", "a torch function or dispatch mode is active outside the call")
        if answer.result == wire.PROBLEM:
            names = [slot.name for slot in self.ground.output.slots]
            problem = {"rule": wire.PROBLEMS[answer.problem], "output": names[answer.output], "detail": answer.detail}
            return self._mutation(block) or of_problem(problem, number)
        if answer.result in (wire.RAISED, wire.BROKEN):
            failure = _failure(answer.payload)
            self.log = failure.get("log", "")
            return of_failure(failure)
        return None

    def _looked_at(self, number: int, chosen: int, block: int, output_block: int) -> Verdict | None:
        """Inputs, red zones, values: in this order. On a device the bytes are kept, and judged with later calls'."""
        if self.ground.on_device:
            look = self.ground.look(block, output_block, self._kept)
            self._kept = output_block, look.output
            self._review.add(number, chosen, look)
            return self._review.verdict(self._valued) if self._review.full else None
        found = self.ground.signs(block, output_block)
        if found.mutated:
            return self._mutation(block)
        if found.overrun:
            return cheated("red_zone", f"call {number} wrote outside its output")
        if self.ground.writes_in_place:
            self._kept = output_block, self.ground.output_bytes(output_block)
        return self._valued(number, chosen, self.ground.outputs(output_block))

    def _valued(self, number: int, chosen: int, outputs: dict[str, Any]) -> Verdict | None:
        finding = self._finding(chosen, outputs)
        if finding is None:
            return None
        return Verdict(Status.INCORRECT_NUMERICAL, finding.rule, f"call {number}: {finding.reason}", self._errors)

    def _mutation(self, block: int | None) -> Verdict | None:
        """CHEATED if the contestant wrote an input; what it may write, it got as a private copy."""
        touched = self.ground.static_mutated() if block is None else self.ground.mutated(block)
        if touched is None:
            return None
        if touched == "red zone":
            return cheated("red_zone", "wrote outside the inputs")
        return cheated("input_mutated", f"input {touched} was written to")

    def _ended(self, arena: Arena, limit_s: float) -> Verdict:
        last = arena.ask(wire.end(), max(1.0, limit_s - self.spent_s))
        self.left = True
        late = self._kept is not None and self.ground.output_differs(*self._kept)
        verdict = self._review.verdict(self._valued)
        if verdict is not None:
            return verdict
        if last.answer.changed or late:
            return _changed(len(self.case.calls) - 1)
        moved = self.ground.output.total_bytes
        if self.ground.on_device:
            fault = device_clocks.missing(self._exchanges, self.case.options["timer"])
            if fault is not None:
                raise RefereeFailed(fault)
            suspicion = device_clocks.suspicion(self._exchanges)
        else:
            staged = sum(self.ground.staged_bytes)
            suspicion = clocks.suspicion(self._turns, moved, self.case.options["warmup_count"], staged_bytes=staged)
        mutation = self._mutation(None)
        if mutation is not None:
            return mutation
        if suspicion is not None:
            return cheated(*suspicion)
        finding = ranks.finding_on(torch.cat(self._standings)) if self._standings else None
        if finding is not None:
            return Verdict(Status.INCORRECT_NUMERICAL, finding.rule, finding.reason)
        return Verdict(Status.PASSED, errors=self._errors)

    def _finding(self, chosen: int, outputs: dict[str, Any]) -> Finding | None:
        if self.case.samples:
            rows = sampling.Rows.of(on_host(self.case.inputs(chosen)))
            draws, (limits, masses) = next(iter(outputs.values())).cpu().reshape(-1), self.case.limits(chosen)
            outside = sampling.mask_finding(rows, limits, draws[None])
            if outside is None:
                noise = torch.Generator().manual_seed(self._seed(-1 - len(self._standings)))
                self._standings.append(ranks.standings(rows, masses, draws, noise))
            return outside
        definition = self.case.definition
        errors = self.case.options["incumbent_errors"].get(self.case.workload.digest, {})
        known = {name: Incumbent(value, definition.policy.incumbent_error_factor) for name, value in errors.items()}
        for name, expected in self.case.expected(chosen, next(iter(outputs.values())).device.type).items():
            rule, dtype = definition.policy.outputs[name], definition.outputs[name].dtype
            comparison = compare(outputs[name], expected, rule, dtype, known.get(name))
            self._errors[name] = merge_figures(self._errors.get(name), comparison.figures)
            if comparison.finding is not None:
                return Finding(comparison.finding.rule, f"output {name}: {comparison.finding.reason}")
        return None


def _changed(call: int) -> Verdict:
    return cheated("output_changed", f"an output of call {call} changed after it was returned")


def _failure(payload: bytes) -> dict[str, str]:
    """The contestant's exception as its process described it; that text may be anything."""
    try:
        body = json.loads(payload)
        failure = {key: str(body[key]) for key in ("rule", "message", "log")}
    except (ValueError, KeyError, TypeError):
        return {"rule": "exception", "message": "an exception that does not describe itself", "log": ""}
    known = failure["rule"] in ("exception", "exit", "memory_limit")
    return failure if known else failure | {"rule": "exception"}

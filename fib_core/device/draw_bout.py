"""The distribution test of a sampler: two secret rows over the batch, drawn many times.

In: a case of a sampling definition, the channel to the driver. Out: a verdict with the draws made and the power
attained. Calls come in orders of many: they are not timed, only counted.
"""

from typing import Any

import torch

from fib_core.device import sampling, wire
from fib_core.device.arena import Arena
from fib_core.device.bout import Bout
from fib_core.device.case import Case
from fib_core.device.compare import Finding
from fib_core.device.draw_plan import LEVEL, PATTERNS, DrawPlan, Order
from fib_core.device.ground import Ground
from fib_core.device.inputs import secret_seed
from fib_core.device.verdict import Verdict, cheated
from schemas.evaluation import Status

# After a quarter of the time limit, at most a minute, no further order is given: fewer draws, and the power says so.
_SHARE = 4
_SOFT_S_MAX = 60.0


class DrawBout(Bout):
    """Are many draws of two rows, mixed over the batch, independent draws of the right distributions?

    ``again``: in another fresh process the opening only: does it draw what the first process drew?
    """

    def __init__(self, case: Case, salt: str, destination: bool, again: bool = False) -> None:
        self.draws: int | None = None
        self.power: float | None = None
        self.coarse_power: float | None = None
        self._again = again
        self._drawn: tuple[list[Any], list[Any]] = ([], [])
        self._made = 0
        super().__init__(case, salt + ("again" if again else "draws"), destination)

    def prepare(self) -> None:
        """The plan, which all contestants share, and room for the outputs of two orders."""
        if self.case.draw_plan is None:
            self.case.draw_plan = DrawPlan.of(self.case)
        self._plan: DrawPlan = self.case.draw_plan
        self._orders = self._plan.orders[:PATTERNS] if self._again else self._plan.orders
        self._room = max(order.calls for order in self._orders)
        sample = self._plan.inputs(self._orders[0])
        static = {name: sample[name] for name in self.case.definition.static}
        self.ground = Ground(self.case, static, sample, self.ground.destination)
        self.ground.open(2 * self._room)

    def run(self, arena: Arena, limit_s: float) -> Verdict:
        """Every order, or as many as there is time for; then the tests. Each order makes one call at least."""
        arena.tell(self.ground.packet, self.ground.fds)
        for number, order in enumerate(self._orders):
            if number >= PATTERNS and self.spent_s >= _soft_limit_s(limit_s):
                break
            verdict = self._ordered(arena, number, order, limit_s)
            if verdict is not None:
                return verdict
        finding = self._repeated() if self._again else self._distribution()
        last = arena.ask(wire.end(), max(1.0, limit_s))
        self.left = True
        if last.answer.changed or self._late():
            return _changed()
        if finding is not None:
            return Verdict(Status.INCORRECT_NUMERICAL, finding.rule, finding.reason)
        return self._mutation(None) or Verdict(Status.PASSED)

    def _ordered(self, arena: Arena, number: int, order: Order, limit_s: float) -> Verdict | None:
        """One order. It leaves the blocks of the order before alone: the last call's output must not change."""
        block, start = number % self.ground.blocks, number % 2 * self._room
        self.ground.stage(self._plan.inputs(order))
        self.ground.fill(block, start, order.calls)
        soft_s = max(_soft_limit_s(limit_s) - self.spent_s, 0.0)
        packet = wire.go(self._made, order.calls, self._bases(block, start), self._seed(number), soft_s)
        exchange = arena.ask(packet, soft_s + limit_s)
        self._exchanges.append(exchange)
        answer = exchange.answer
        verdict = self._answered(answer, self._made + answer.made, block)
        if verdict is not None:
            return verdict
        last = start + answer.made - 1
        if self._late() or not self.ground.as_returned(last, answer.digest):
            return _changed()
        signs = self.ground.signs(block, start, order.calls)
        if signs.mutated:
            return self._mutation(block) or cheated("input_mutated", "an input was written to")
        if signs.overrun:
            return cheated("red_zone", "a call wrote outside its output")
        self._kept = last, self.ground.output_bytes(last)
        self._collect(order, start, answer.made)
        return None

    def _late(self) -> bool:
        return self._kept is not None and self.ground.output_differs(*self._kept)

    def _collect(self, order: Order, start: int, made: int) -> None:
        """Draws by row; all blocks at once, since there may be tens of thousands."""
        first = next(iter(self.ground.outputs(start).values()))
        step = self.ground.output.total_bytes // first.itemsize
        every = first.as_strided((made, first.numel()), (step, 1), first.storage_offset())
        draws = every.cpu().to(torch.int64)
        self._made += made
        for row, blocks in enumerate(self._drawn):
            held = order.places == row
            if bool(held.any()):
                blocks.append(draws[:, held])

    def _distribution(self) -> Finding | None:
        self._plan.first = [blocks[:PATTERNS] for blocks in self._drawn]
        self.draws = sum(block.numel() for blocks in self._drawn for block in blocks)
        generator = torch.Generator().manual_seed(secret_seed(self.case.options["seed"], "cells"))
        found = self._outside()
        for tested, blocks in zip(self._plan.rows, self._drawn, strict=True):
            if found is not None:
                return found
            if blocks:
                test = sampling.distribution_test(tested.rows, 0, blocks, generator, LEVEL)
                self.power = min(test.power, 1.0 if self.power is None else self.power)
                self.coarse_power = min(test.coarse_power, 1.0 if self.coarse_power is None else self.coarse_power)
                found = test.finding
        return found

    def _repeated(self) -> Finding | None:
        """The same places of the same calls in two processes, under different seeds."""
        found = self._outside()
        for tested, pairs in zip(self._plan.rows, zip(self._plan.first, self._drawn, strict=True), strict=True):
            if found is not None or not pairs[0] or not pairs[1]:
                return found
            both = list(zip(*pairs, strict=False))
            sides = [torch.cat([pair[side][: min(map(len, pair))].reshape(-1) for pair in both]) for side in (0, 1)]
            found = sampling.repeated_stream(tested.rows, 0, sides[0], sides[1], LEVEL)
        return found

    def _outside(self) -> Finding | None:
        for tested, blocks in zip(self._plan.rows, self._drawn, strict=True):
            limits = sampling.thresholds(tested.rows, sampling.MASK_SLACK)
            every = torch.cat([block.reshape(-1, 1) for block in blocks]) if blocks else torch.zeros(0, 1)
            found = sampling.mask_finding(tested.rows, limits, every)
            if found is not None:
                return found
        return None


def _soft_limit_s(limit_s: float) -> float:
    return min(limit_s / _SHARE, _SOFT_S_MAX)


def _changed() -> Verdict:
    return cheated("output_changed", "an output changed after it was returned")

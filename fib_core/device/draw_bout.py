"""The distribution test of a sampler: one secret row repeated over the batch, drawn many times.

In: a case of a sampling definition, the channel to the driver. Out: a verdict with the draws made and the power
attained. The calls are made in one go: they are not timed, only counted.
"""

from typing import Any

import torch

from fib_core.device import sampling, wire
from fib_core.device.arena import Arena
from fib_core.device.bout import Bout
from fib_core.device.case import Case, on_host
from fib_core.device.ground import Ground
from fib_core.device.inputs import secret_seed
from fib_core.device.verdict import Verdict, cheated
from schemas.evaluation import Status


class DrawBout(Bout):
    """One secret row repeated over the batch, drawn many times: is it the right distribution?"""

    def __init__(self, case: Case, salt: str, destination: bool) -> None:
        self.draws: int | None = None
        self.power: float | None = None
        super().__init__(case, salt + "draws", destination)

    def prepare(self) -> None:
        """The liveliest row, repeated, and an output block for every call."""
        row, inputs = self.case.liveliest_row(), self.case.inputs(0)
        batch = inputs["probs"].shape[0]
        one = {n: v[row : row + 1] for n, v in inputs.items()}  # Rows.of took no scalars
        self._rows = sampling.Rows.of(on_host(one))
        self._repeated = {n: v.repeat(batch, *[1] * (v.dim() - 1)) for n, v in one.items()}
        self._calls = max(2, -(-self.case.options["sampling_draws"] // batch))
        static = {name: self._repeated[name] for name in self.case.definition.static}
        self.ground = Ground(self.case, static, self._repeated, self.ground.destination)
        self.ground.open(self._calls)

    def run(self, arena: Arena, limit_s: float) -> Verdict:
        """Fewer draws than asked for if the contestant is slow (a quarter of the limit), and the power says so."""
        arena.tell(self.ground.packet, self.ground.fds)
        self.ground.stage(self._repeated)
        self.ground.fill(0, 0, self._calls)
        order = wire.go(0, self._calls, self._bases(0, 0), self._seed(0), limit_s / 4)
        exchange = arena.ask(order, limit_s * 5 / 4)
        self._exchanges.append(exchange)
        verdict = self._answered(exchange.answer, exchange.answer.made, 0) or self._mutation(0)
        if verdict is None and self.ground.signs(0, 0, None, self._calls).overrun:
            verdict = cheated("red_zone", "a call wrote outside its output")
        if verdict is not None:
            return verdict
        finding = self._distribution(exchange.answer.made)
        late = arena.ask(wire.end(), max(1.0, limit_s)).answer.changed
        self.left = True
        if late:
            return cheated("output_changed", "the last output changed after it was returned")
        if finding is not None:
            return Verdict(Status.INCORRECT_NUMERICAL, finding.rule, finding.reason)
        return self._mutation(None) or Verdict(Status.PASSED)

    def _distribution(self, made: int) -> Any:
        calls = [next(iter(self.ground.outputs(block).values())) for block in range(made)]
        draws = torch.stack([drawn.reshape(-1).to(torch.int64) for drawn in calls]).cpu()
        limits = sampling.thresholds(self._rows, sampling.MASK_SLACK)
        finding = sampling.mask_finding(self._rows, limits, draws.reshape(-1, 1))
        self.draws = draws.numel()
        if finding is not None:
            return finding
        generator = torch.Generator().manual_seed(secret_seed(self.case.options["seed"], "cells"))
        test = sampling.distribution_test(self._rows, 0, draws, generator)
        self.power = test.power
        return test.finding

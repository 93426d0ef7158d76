"""The distribution test of a sampler: one secret row repeated over the batch, drawn many times.

In: a case of a sampling definition. Out: plans, regions, and a verdict with the draws made and the power attained.
"""

from typing import Any

import torch

from fib_core.device import sampling
from fib_core.device.bout import Bout
from fib_core.device.case import Case
from fib_core.device.inputs import secret_seed
from fib_core.device.verdict import Verdict
from schemas.evaluation import Status


class DrawBout(Bout):
    """One secret row repeated over the batch, drawn many times: is it the right distribution?"""

    def __init__(self, case: Case, salt: str) -> None:
        self.case = case
        inputs = case.inputs(0)
        row = case.liveliest_row()
        batch = inputs["probs"].shape[0]
        one = {n: v[row : row + 1] for n, v in inputs.items()}  # Rows.of took no scalars
        repeated = {n: v.repeat(batch, *[1] * (v.dim() - 1)) for n, v in one.items()}
        self.calls = [0] * max(2, -(-case.options["sampling_draws"] // batch))
        self._rows = sampling.Rows.of(one)
        self._open([repeated], salt + "draws")

    def judge(self, message: dict[str, Any]) -> dict[str, Any]:
        """Mask and distribution over the calls that were made."""
        name = next(iter(self.case.definition.outputs))
        draws = torch.stack([self.output(call, name).reshape(-1).to(torch.int64) for call in range(message["calls"])])
        limits = sampling.thresholds(self._rows, sampling.MASK_SLACK)
        finding = sampling.mask_finding(self._rows, limits, draws.reshape(-1, 1))
        draws_made, power = draws.numel(), None
        if finding is None:
            generator = torch.Generator().manual_seed(secret_seed(self.case.options["seed"], "cells"))
            test = sampling.distribution_test(self._rows, 0, draws, generator)
            finding, power = test.finding, test.power
        mutated = self.mutated()
        verdict = Verdict(Status.PASSED)
        if finding is not None:
            verdict = Verdict(Status.INCORRECT_NUMERICAL, finding.rule, finding.reason)
        return (mutated or verdict).as_json() | {"draws": draws_made, "power": power}

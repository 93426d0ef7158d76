"""One contestant against one workload, seen from the referee: regions out, outputs in, judged.

In: a case (definition, workload, seed) and what the contestant's process reported. Out: plans, descriptors, verdicts.
"""

from typing import Any

import torch

from fib_core.device import regions, sampling
from fib_core.device.case import Case
from fib_core.device.compare import Finding, compare
from fib_core.device.inputs import secret_seed
from fib_core.device.verdict import Verdict, merge_figures
from schemas.evaluation import ErrorFigures, Status

_INPUT_MUTATED = "input_mutated"


class Bout:
    """Fresh regions for one contestant and one workload; every output of every call is judged."""

    def __init__(self, case: Case, salt: str) -> None:
        self.case = case
        options = case.options
        calls = options["warmup_count"] + options["sample_count"]
        # Warm-up calls use the last set, so that the first timed call meets contents that were never seen.
        self.calls = [(i - options["warmup_count"]) % options["input_sets"] for i in range(calls)]
        self._open([case.inputs(index) for index in range(options["input_sets"])], salt)
        for index in sorted(set(self.calls)):  # now, and with every core, not after the calls
            _ = case.limits(index) if case.samples else case.expected(index)

    def _open(self, sets: list[dict[str, Any]], salt: str) -> None:
        definition = self.case.definition
        self.pristine = [{n: v for n, v in values.items() if isinstance(v, torch.Tensor)} for values in sets]
        specs = [(name, definition.inputs[name].dtype, tuple(v.shape)) for name, v in self.pristine[0].items()]
        self.layout, self.outputs = regions.plan(specs), self.case.output_layout()
        self.fds = [regions.create(self.layout.total_bytes) for _ in sets]
        self.shared = [regions.attach(fd, self.layout.total_bytes) for fd in self.fds]
        for region, values in zip(self.shared, self.pristine, strict=True):
            for slot in self.layout.slots:
                regions.view(region, slot).copy_(values[slot.name])
        total = self.outputs.total_bytes * len(self.calls)
        self.fds.append(regions.create(total))
        self.region = regions.attach(self.fds[-1], total)
        self.plan: dict[str, Any] = {
            "order": list(definition.inputs),
            "scalars": {n: v for n, v in sets[0].items() if not isinstance(v, torch.Tensor)},
            "inputs": self.layout.as_json(),
            "outputs": self.outputs.as_json(),
            "mutates": definition.mutates,
            "calls": self.calls,
            "call_seed": secret_seed(self.case.options["seed"], "calls", salt, self.case.workload.digest),
        }

    def judge(self, message: dict[str, Any]) -> dict[str, Any]:
        """Mutation first, then values; the first wrong call decides, figures cover the calls up to it."""
        mutated = self.mutated()
        if mutated is not None:
            return mutated.as_json()
        errors: dict[str, ErrorFigures] = {}
        judged: dict[int, int] = {}
        for call, chosen in enumerate(self.calls):
            if chosen in judged and self._same_outputs(call, judged[chosen]):
                continue
            judged[chosen] = call
            finding = self._sample_finding(call, chosen) if self.case.samples else self._values(call, chosen, errors)
            if finding is not None:
                verdict = Verdict(Status.INCORRECT_NUMERICAL, finding.rule, f"call {call}: {finding.reason}", errors)
                return verdict.as_json()
        return Verdict(Status.PASSED, errors=errors).as_json()

    def mutated(self) -> Verdict | None:
        """CHEATED if the contestant wrote an input; what it may write, it got as a private copy."""
        for values, region in zip(self.pristine, self.shared, strict=True):
            for slot in self.layout.slots:
                now, then = regions.view(region, slot), values[slot.name]
                if not torch.equal(regions.bytes_of(now), regions.bytes_of(then)):
                    return Verdict(Status.CHEATED, _INPUT_MUTATED, f"input {slot.name} was written to")
        return None

    def output(self, call: int, name: str) -> Any:
        """One output of one call, as the contestant left it."""
        slot = next(slot for slot in self.outputs.slots if slot.name == name)
        return regions.view(self.region, slot, call * self.outputs.total_bytes)

    def _same_outputs(self, call: int, judged: int) -> bool:
        """Bit for bit what a call on the same inputs gave, which was found right."""
        size = self.outputs.total_bytes
        return bool(torch.equal(self.region[call * size :][:size], self.region[judged * size :][:size]))

    def _values(self, call: int, chosen: int, errors: dict[str, ErrorFigures]) -> Finding | None:
        definition = self.case.definition
        incumbent = self.case.options["incumbent_errors"].get(self.case.workload.digest, {})
        for name, expected in self.case.expected(chosen).items():
            actual = self.output(call, name)
            rule, dtype = definition.policy.outputs[name], definition.outputs[name].dtype
            comparison = compare(actual, expected, rule, dtype, incumbent.get(name))
            errors[name] = merge_figures(errors.get(name), comparison.figures)
            if comparison.finding is not None:
                finding = comparison.finding
                return Finding(finding.rule, f"output {name}: {finding.reason}")
        return None

    def _sample_finding(self, call: int, chosen: int) -> Finding | None:
        rows = sampling.Rows.of(self.case.inputs(chosen))
        draws = self.output(call, next(iter(self.case.definition.outputs)))
        return sampling.mask_finding(rows, self.case.limits(chosen), draws.reshape(1, -1))

"""Inputs and expected outputs of one workload, per input set: built on first use, kept between contestants.

In: a definition, a workload, the visit's options with the secret seed. Out: tensors by name. Runs in the referee only.
"""

from typing import Any

import torch

from fib_core.device import mutations, regions, sampling
from fib_core.device.inputs import InputSource, secret_seed
from fib_core.device.memory import memory_of
from fib_core.device.reference import compile_reference, expect
from fib_core.errors import ContractError
from schemas.definition import Definition
from schemas.workload import Workload


class Case:
    """Inputs and expected outputs of one workload, one of each per input set, built on first use."""

    def __init__(self, definition: Definition, workload: Workload, options: dict[str, Any]) -> None:
        self.definition, self.workload, self.options = definition, workload, options
        self.samples = any(rule.kind == "samples" for rule in definition.policy.outputs.values())
        self.memory = memory_of(options["device"])
        self._source = InputSource(definition, workload, options["seed"], options["blob_root"], options["device"])
        self._inputs: dict[int, dict[str, Any]] = {}
        self._expected: dict[int, dict[str, Any]] = {}
        self._expected_on_host: dict[int, dict[str, Any]] = {}
        self._limits: dict[int, tuple[Any, Any]] = {}
        self._row: int | None = None
        self.draw_plan: Any = None
        """Made by the first distribution test, kept for all contestants."""
        self._survivors: tuple[str, ...] | None = None
        self.precision: str | None = None

    @property
    def calls(self) -> list[int]:
        """The input set of every call: warm-ups share set 0, timed calls meet contents that were never seen before."""
        sets = self.options["input_sets"]
        timed = [1 + i % (sets - 1) if sets > 1 else 0 for i in range(self.options["sample_count"])]
        return [0] * self.options["warmup_count"] + timed

    @property
    def kept_bytes(self) -> int:
        """Memory that :meth:`forget` gives back."""
        tensors = [value for values in self._inputs.values() for value in values.values()]
        return sum(value.nbytes for value in tensors if isinstance(value, torch.Tensor))

    def forget(self) -> None:
        """Drop the inputs; expected outputs stay, since a reference may be slow."""
        self._inputs.clear()
        self._source.forget()

    def prepare(self) -> None:
        """Build what every call will be compared with."""
        for index in sorted(set(self.calls)):
            _ = self.limits(index) if self.samples else self.expected(index)

    def inputs(self, index: int) -> dict[str, Any]:
        """Private, pristine inputs of one set."""
        if index not in self._inputs:
            self._inputs[index] = self._source.values(index)
        return self._inputs[index]

    def expected(self, index: int, place: str | None = None) -> dict[str, Any]:
        """What the reference says about one set; ``place`` "cpu": a copy on the host."""
        if place == "cpu" and self.memory.device != "cpu":
            if index not in self._expected_on_host:
                self._expected_on_host[index] = on_host(self.expected(index))
            return self._expected_on_host[index]
        if index not in self._expected:
            run = compile_reference(self.definition)
            found = expect(self.definition, run, self.inputs(index))
            self.precision = found.precision + (f": {found.why}" if found.why else "")
            outputs = found.outputs
            slots = self.output_layout().slots
            self._expected[index] = {slot.name: _shaped(outputs[slot.name], slot) for slot in slots}
        return self._expected[index]

    def survivors(self) -> tuple[str, ...]:
        """Mutated outputs that the rules would let pass on this workload; found once."""
        if self._survivors is None:
            generator = torch.Generator().manual_seed(secret_seed(self.options["seed"], "mutations"))
            self._survivors = self._examined(generator)
        return self._survivors

    def _examined(self, generator: torch.Generator) -> tuple[str, ...]:
        policy, outputs = self.definition.policy, self.definition.outputs
        if self.samples:
            rows = sampling.Rows.of(on_host(self.inputs(0)))
            draws, batch = self.options["sampling_draws"], rows.probs.shape[0]
            return mutations.sampler_survivors(rows, self.liveliest_row(), draws, batch, generator) if draws else ()
        sets = [on_host(self.expected(index)) for index in sorted(set(self.calls))[:2]]
        return mutations.survivors(policy, outputs, sets, on_host(self.inputs(0)), generator)

    def limits(self, index: int) -> tuple[Any, Any]:
        """Smallest legal probability and kept mass per row of one set of a sampling definition."""
        if index not in self._limits:
            rows = sampling.Rows.of(on_host(self.inputs(index)))
            self._limits[index] = sampling.boundaries(rows, sampling.MASK_SLACK)
        return self._limits[index]

    def liveliest_row(self) -> int:
        """The row of set 0 that tells most about a sampler."""
        if self._row is None:
            self._row = sampling.liveliest_row(sampling.Rows.of(on_host(self.inputs(0))))
        return self._row

    def output_layout(self) -> regions.Layout:
        """Places of one call's outputs."""
        specs = self.definition.outputs
        shapes = {name: self.definition.shape_of(name, self.workload.axes) or () for name in specs}
        return regions.plan((name, spec.dtype, shapes[name]) for name, spec in specs.items())


def on_host(values: dict[str, Any]) -> dict[str, Any]:
    """Tensors on the host: what few numbers need is not worth a kernel launch each."""
    return {name: value.cpu() if isinstance(value, torch.Tensor) else value for name, value in values.items()}


def _shaped(expected: Any, slot: regions.Slot) -> Any:
    """A reference may drop or add unit axes; any other shape breaks its own definition."""
    if [size for size in expected.shape if size != 1] != [size for size in slot.shape if size != 1]:
        shapes = f"{list(expected.shape)}, declared {list(slot.shape)}"
        raise ContractError(f"the reference returns shape {shapes} for {slot.name}")
    return expected.reshape(slot.shape)

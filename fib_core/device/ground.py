"""The memory of one bout: regions shared with the candidate, red zones, poison, and what was written where.

In: a case, a secret. Out: packets that describe the memory, descriptors to hand over, blocks filled and looked at
again. Knows nothing of verdicts on values.
"""

import secrets
from typing import Any, NamedTuple

import torch

from fib_core.device import driver, regions, wire
from fib_core.device.case import Case
from fib_core.device.channel import close_all
from fib_core.device.look import Frame, Look, Parts, look
from fib_core.device.memory import Opened
from schemas.workload import RandomInput

_POISON = 0xFF  # NaN in every float type, -1 in every integer
_BLOCK_BUDGET_BYTES = 1 << 29
# What is larger is put in place before the call. Who reads it takes longer than could be hidden anyway (clocks).
_STAGED_MAX_BYTES = 1 << 24


class Signs(NamedTuple):
    """What a look at the memory after a call shows."""

    mutated: bool
    overrun: bool


class Ground:
    """Three regions: static inputs, blocks of fresh inputs, blocks of outputs.

    Blocks are reused in a secret order: a contestant meets old addresses with new contents, and new addresses.
    """

    def __init__(self, case: Case, static: dict[str, Any], sample: dict[str, Any], destination: bool) -> None:
        definition, self._memory = case.definition, case.memory
        self._mutates, self.destination = definition.mutates, destination
        self.scalars = {n: v for n, v in sample.items() if not isinstance(v, torch.Tensor)}
        tensors = {n: v for n, v in sample.items() if isinstance(v, torch.Tensor)}
        fresh = [n for n in tensors if n not in static and n not in definition.mutates]
        specs = {n: (n, definition.inputs[n].dtype, tuple(v.shape)) for n, v in tensors.items()}
        recipes = case.workload.inputs
        random = {n: recipe for n, recipe in recipes.items() if isinstance(recipe, RandomInput)}
        padded = [n for n, recipe in random.items() if recipe.layout == "padded"]
        self.static = regions.plan((specs[n] for n in static), padded)
        self.fresh = regions.plan((specs[n] for n in fresh), padded)
        self.output = case.output_layout()
        self._order = list(definition.inputs)
        self._static_bytes = self._template(self.static, static)
        self._written, self._clean = self._template(self.fresh, {}), self._template(self.output, {}, _POISON)
        self._staged_inputs = {slot.name: regions.view(self._written, slot) for slot in self.fresh.slots}
        self._staged_outputs = {slot.name: regions.view(self._clean, slot) for slot in self.output.slots}
        self._file: int | None = None
        red = torch.zeros(self.output.total_bytes, dtype=torch.bool, device=self._memory.device)
        for start, end in self.output.guards:
            red[start:end] = True
        self.frame = Frame(self._clean, red)

    def open(self, output_blocks: int | None = None) -> None:
        """Make the regions; ``output_blocks`` overrides their number (draws need one a call)."""
        block = self.fresh.total_bytes + self.output.total_bytes
        self.blocks = 3 if 3 * block <= _BLOCK_BUDGET_BYTES else 2
        self.output_blocks = output_blocks or self.blocks
        blocks = self.fresh.total_bytes * self.blocks, self.output.total_bytes * self.output_blocks
        sizes = self.static.total_bytes, *blocks
        self._lasting, self._opened = self._memory.open(sizes[:1]), self._memory.open(sizes[1:])
        self.fds = self._lasting.fds + self._opened.fds
        self._static, self._fresh, self._output = self._lasting.tensors + self._opened.tensors
        self._static.copy_(self._static_bytes)
        self._memory.settle()
        handles = self._lasting.handles + self._opened.handles
        self.packet = wire.setup(self._arguments(), self._outputs(), sizes, handles)

    def close(self) -> list[Opened]:
        """Give the memory back, but for what is answered: that must stay until the contestant's process is gone.

        No two workloads have their static inputs at one address there, since an engine knows a weight by its address.
        """
        self._static = self._fresh = self._output = None
        self._opened.close()
        self._drop_file()
        if self._lasting.outlives_mapping:
            return [self._lasting]
        self._lasting.close()
        return []

    def stage(self, values: dict[str, Any]) -> None:
        """Make the next contents, where nobody else sees them. Private copies lie where their results are read."""
        for name, place in self._staged_inputs.items():
            place.copy_(values[name])
        for source, result in self._mutates.items():
            self._staged_outputs[result].copy_(values[source])

    @property
    def staged_bytes(self) -> tuple[int, int]:
        """Of the inputs and outputs that the driver puts in place just before a call; zeros if they are too large."""
        sizes = self.fresh.total_bytes, self.output.total_bytes
        return sizes if not self.on_device and sum(sizes) <= _STAGED_MAX_BYTES else (0, 0)

    def hand_over(self, block: int, output_block: int) -> list[int]:
        """The next contents in a file of their own, for the driver alone; what is too large is put in place now.

        Never one file for several calls: who kept a descriptor would see the inputs of the calls to come.
        """
        self._drop_file()
        if not any(self.staged_bytes):
            self.fill(block, output_block)
            return []
        self._file = regions.written([self._written, self._clean])
        return [self._file]

    def _drop_file(self) -> None:
        close_all([self._file] if self._file is not None else [])
        self._file = None

    def fill(self, block: int, output_block: int, count: int = 1) -> None:
        """Put them in place: poisoned outputs, then new inputs.

        Inputs last: who watches the memory for them would else work ahead while the outputs are written.
        """
        size = self.output.total_bytes
        self._output[output_block * size :][: count * size].view(count, size).copy_(self._clean)
        self._at(self._fresh, self.fresh, block).copy_(self._written)
        self._memory.settle()

    def signs(self, block: int, output_block: int, count: int = 1) -> Signs:
        """Were inputs written, red zones overrun?"""
        size = self.output.total_bytes
        written = self._output[output_block * size :][: count * size].view(count, size)
        fresh = self._at(self._fresh, self.fresh, block)
        if self.on_device:
            overrun = bool(((written != self._clean) & self.frame.red).any())
            return Signs(bool((fresh != self._written).any()), overrun)
        overrun = any(
            not torch.equal(written[:, start:end], self._clean[start:end].expand(count, -1))
            for start, end in self.output.guards
        )
        return Signs(not regions.same_bytes(fresh, self._written), overrun)

    def look(self, block: int, output_block: int, kept: tuple[int, Any] | None) -> Look:
        """Of a device: everything that a verdict needs of this call, and of what ``kept`` was copied from before."""
        output = self._at(self._output, self.output, output_block)
        before, then = (self._at(self._output, self.output, kept[0]), kept[1]) if kept else (output, output)
        fresh = self._at(self._fresh, self.fresh, block)
        return look(Parts(fresh, self._written, output, before, then), self.frame)

    def mutated(self, block: int) -> str | None:
        """Name of a fresh input that was written to, or "red zone"."""
        return _difference(self._at(self._fresh, self.fresh, block), self._written, self.fresh)

    def static_mutated(self) -> str | None:
        """The same of static inputs."""
        return _difference(self._static, self._static_bytes, self.static)

    def outputs(self, output_block: int) -> dict[str, Any]:
        """Outputs of one block by name."""
        base = output_block * self.output.total_bytes
        return {slot.name: regions.view(self._output, slot, base) for slot in self.output.slots}

    def as_returned(self, output_block: int, digest: int) -> bool:
        """Is what the contestant can still write to what it was when the call returned? Only asked on the host."""
        if self.on_device:
            return True
        mutated = set(self._mutates.values())
        base = self._output.data_ptr() + output_block * self.output.total_bytes
        writable = [slot for slot in self.output.slots if self.destination or slot.name in mutated]
        return driver.digest((base + slot.offset, slot.size_bytes) for slot in writable) == digest

    def output_bytes(self, output_block: int) -> Any:
        """A copy of one output block, to find late writes."""
        return self._at(self._output, self.output, output_block).clone()

    def output_differs(self, output_block: int, then: Any) -> bool:
        """Has the block changed since :meth:`output_bytes`?"""
        return not regions.same_bytes(self._at(self._output, self.output, output_block), then)

    @property
    def writes_in_place(self) -> bool:
        """Does the contestant hold memory that outputs are read from?"""
        return self.destination or bool(self._mutates)

    @property
    def on_device(self) -> bool:
        """Is a late write found by a second copy (on a device), or by the driver itself (on the host)?"""
        return self._memory.device != "cpu"

    def _at(self, region: Any, layout: regions.Layout, block: int) -> Any:
        return region[block * layout.total_bytes :][: layout.total_bytes]

    def _template(self, layout: regions.Layout, values: dict[str, Any], poison: int | None = None) -> Any:
        body = torch.zeros(layout.total_bytes, dtype=torch.uint8, device=self._memory.device)
        for start, end in layout.guards:
            body[start:end] = torch.frombuffer(bytearray(secrets.token_bytes(end - start)), dtype=torch.uint8)
        for slot in layout.slots:
            target = regions.view(body, slot)
            if slot.name in values:
                target.copy_(values[slot.name])
            elif poison is not None:
                regions.bytes_of(target).fill_(1 if slot.dtype == "bool" else poison)
        return body

    def _arguments(self) -> list[bytes]:
        places = {slot.name: (wire.STATIC, slot) for slot in self.static.slots}
        places |= {slot.name: (wire.FRESH, slot) for slot in self.fresh.slots}
        results = {slot.name: slot for slot in self.output.slots}
        places |= {source: (wire.OUTPUT, results[result]) for source, result in self._mutates.items()}
        return [
            wire.scalar(self.scalars[name]) if name in self.scalars else _tensor(*places[name]) for name in self._order
        ]

    def _outputs(self) -> list[bytes]:
        asked = wire.BUFFER if self.destination else wire.RETURNED
        mutated = set(self._mutates.values())
        return [_tensor(wire.IN_PLACE if s.name in mutated else asked, s) for s in self.output.slots]


def _tensor(place: int, slot: regions.Slot) -> bytes:
    return wire.tensor(place, slot.dtype, slot.shape, slot.offset, slot.strides)


def _difference(now: Any, then: Any, layout: regions.Layout) -> str | None:
    if regions.same_bytes(now, then):
        return None
    for slot in layout.slots:
        span = slice(slot.offset, slot.offset + slot.size_bytes)
        if not torch.equal(now[span], then[span]):
            return slot.name
    return "red zone"

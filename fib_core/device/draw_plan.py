"""What a distribution test draws: which rows, how often, and which place of the batch holds which row.

In: a case of a sampling definition. Out: two rows, and orders of calls with the inputs of each. Made once and kept for
every contestant. Runs in the referee only: a sampler that knows which place holds which row could mix them up unseen.
"""

from dataclasses import dataclass, field
from typing import Any

import torch

from fib_core.device import sampling
from fib_core.device.case import Case, on_host
from fib_core.device.inputs import secret_seed

LEVEL = sampling.FALSE_REJECTION / 2
"""False rejection of an exact sampler by the tests of one row; two rows are tested."""

PATTERNS = 4
"""Arrangements of the two rows over the batch. The first so many orders, one of each, are the opening."""

_OPENING_DRAWS = 512
_ORDER_BYTES = 32 << 20  # of output blocks: two orders have room at a time
_DRAWS_MIN = 256
_TURNS = 8


@dataclass(frozen=True)
class TestedRow:
    """One secret row: what a test asks about, what a contestant is given, how many draws it takes."""

    __test__ = False  # no test class

    rows: sampling.Rows
    inputs: dict[str, Any]
    wanted: int


@dataclass(frozen=True)
class Order:
    """Calls on the same inputs; ``places`` [batch] says which row lies where."""

    places: Any
    calls: int


@dataclass
class DrawPlan:
    """Rows and orders; ``first`` keeps what the opening of the latest contestant's first process drew, by row."""

    rows: tuple[TestedRow, TestedRow]
    orders: tuple[Order, ...]
    shared: frozenset[str]
    """Filters that hold for every row of the batch."""
    first: list[list[Any]] = field(default_factory=list)

    def inputs(self, order: Order) -> dict[str, Any]:
        """Inputs of one order."""
        one, other = (row.inputs for row in self.rows)
        places = order.places
        return {
            name: value if name in self.shared else torch.cat([value, other[name]])[places.to(value.device)]
            for name, value in one.items()
        }

    @classmethod
    def of(cls, case: Case) -> "DrawPlan":
        """The liveliest row and the next that differs from it."""
        values = case.inputs(0)
        batch = len(values["probs"])
        shared = frozenset(name for name, value in values.items() if len(value) != batch)
        rows = _two_rows(case, batch)
        patterns = _patterns(case, batch)
        held = [sum(int((places == row).sum()) for places in patterns) for row in (0, 1)]
        opening = max(2, -(-_OPENING_DRAWS // (batch * len(patterns))))
        calls = max(-(-row.wanted // count) for row, count in zip(rows, held, strict=True) if count)
        most = max(opening, _ORDER_BYTES // case.output_layout().total_bytes)
        # Orders of one row only take turns: whoever is slow has drawn some of both.
        rounds = _TURNS if batch < PATTERNS else 1
        parts = [opening, *_parts(calls - opening, most, rounds)]
        return cls(rows, tuple(Order(places, part) for part in parts for places in patterns), shared)


def _two_rows(case: Case, batch: int) -> tuple[TestedRow, TestedRow]:
    """A batch of one has its second row in another input set."""
    values = case.inputs(0)
    order = sampling.by_liveliness(sampling.Rows.of(on_host(values)))
    one, *others = [_row(values, row, batch) for row in order] + ([_row(case.inputs(1), 0, 1)] if batch == 1 else [])
    other = next((row for row in others if not _alike(one, row)), one)
    return _tested(case, one), _tested(case, other)


def _row(values: dict[str, Any], row: int, batch: int) -> dict[str, Any]:
    return {name: value[row : row + 1] if len(value) == batch else value for name, value in values.items()}


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


def _tested(case: Case, inputs: dict[str, Any]) -> TestedRow:
    rows = sampling.Rows.of(on_host(inputs))
    wanted = min(max(sampling.needed_draws(rows, 0, LEVEL), _DRAWS_MIN), case.options["sampling_draws"])
    own = {name: value.clone() for name, value in inputs.items()}  # a view would keep the whole input set alive
    return TestedRow(rows, own, wanted)


def _patterns(case: Case, batch: int) -> list[Any]:
    """Both rows in a secret order. Small batches also hold one row twice: do places share their random numbers?"""
    seed = secret_seed(case.options["seed"], "places", case.workload.digest)
    generator = torch.Generator().manual_seed(seed)
    even = torch.arange(batch) % 2
    mixed = [even[torch.randperm(batch, generator=generator)] for _ in range(PATTERNS)]
    pure = [torch.zeros_like(even), torch.ones_like(even)]
    if case.definition.static:
        return mixed[:1] * PATTERNS  # what is static cannot be arranged anew
    if batch == 1:
        return pure * (PATTERNS // 2)
    if batch == 2:
        mixed = [even, even.flip(0)]
    return [*mixed[:2], *pure] if batch < 4 else mixed


def _parts(calls: int, most: int, rounds: int) -> list[int]:
    """Calls in orders of at most so many, in at least so many rounds, as even as can be."""
    count = min(max(-(-max(calls, 0) // most), rounds), max(calls, 0))
    return [calls // count + (number < calls % count) for number in range(count)]

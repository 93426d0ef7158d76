"""One index entry, ready to run. In: a call that fits its definition. Out: the outputs, in definition order.

Builds the entry's solution on first use, hides its calling convention and remembers its failures. Knows nothing of how
the entry was chosen.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fib_core.errors import FibError
from fib_core.runtime.signature import Call, torch_dtype

if TYPE_CHECKING:
    from schemas.definition import Definition
    from schemas.index import IndexEntry, KeptKey
    from schemas.solution import Solution

Build = Callable[["Solution", str, Path], Callable[..., Any]]
Returns = Literal["all", "fresh"]


class WrongResult(FibError):
    """A solution returned something else than its definition's outputs."""


class Slot:
    """An entry or a kept key, its solution (None: the incumbent, the caller's own function) and its counters."""

    def __init__(self, entry: "IndexEntry | KeptKey", solution: "Solution | None", outputs: "Outputs") -> None:
        self.entry, self.solution, self._outputs = entry, solution, outputs
        self.failure = ""
        self.is_ready = False
        self.hit_count = self.incumbent_count = 0
        self._run: Callable[..., Any] | None = None
        self._building = threading.Lock()
        self._checked: set[tuple[int, ...]] = set()

    @property
    def state(self) -> str:
        """For people: incumbent, unused, ready, or what went wrong."""
        if self.solution is None:
            return "incumbent"
        return self.failure or ("ready" if self._run else "unused")

    def prepare(self, build: Build, build_dir: Path) -> bool:
        """True once the solution can run. The first caller builds; whoever comes meanwhile is told False at once."""
        if self._run is not None or self.solution is None:
            return not self.failure
        if self.failure or not self._building.acquire(blocking=False):
            return False
        try:
            self._run = self._run or build(self.solution, self.entry.solution_digest or "", build_dir)
            self.is_ready = not self.failure
        except Exception as error:  # noqa: BLE001 - foreign code: whatever its build raises must not reach the server
            self.fail(f"does not build: {type(error).__name__}: {error}")
        finally:
            self._building.release()
        return not self.failure

    def fail(self, why: str) -> None:
        """Switch this entry off for the life of the process."""
        self.failure, self.is_ready = why, False

    def run(self, call: Call, returns: Returns) -> Any:
        """Run the solution; raises whatever it raises, or :class:`WrongResult`."""
        assert self._run is not None
        assert self.solution is not None
        # A parameter is handed over as a plain view: kernels read memory, they do not extend a graph.
        args = call.args
        for value in args:
            if getattr(value, "requires_grad", False):
                args = _detached(args)
                break
        if self.solution.spec.destination_passing_style:
            fresh = self._outputs.allocate(call)
            self._run(*args, *fresh)
        else:
            fresh = _as_list(self._run(*args))
            if call.sizes not in self._checked:
                self._outputs.check(fresh, call)
                if len(self._checked) < 1024:
                    self._checked.add(call.sizes)
        return self._outputs.arrange(fresh, call, returns)


class Outputs:
    """How a definition's outputs come back: allocated or returned, or read from an input that is changed in place."""

    def __init__(self, definition: "Definition") -> None:
        import torch

        self._torch = torch
        sources = {result: list(definition.inputs).index(name) for name, result in definition.mutates.items()}
        slots = {axis: slot for slot, axis in enumerate(definition.var_axes)}
        self.has_mutated = bool(sources)
        self._fresh = [
            (name, None if spec.shape is None else _dims(spec.shape, slots, definition.const_axes),
             torch_dtype(torch, spec.dtype))
            for name, spec in definition.outputs.items()
            if name not in sources
        ]  # fmt: skip
        # Per output: the position of the input that holds it, or None for the next fresh one.
        self._order = [sources.get(name) for name in definition.outputs]

    def allocate(self, call: Call) -> list[Any]:
        """Uninitialised, contiguous buffers for the outputs that no input holds, on the call's device."""
        empty, sizes, device = self._torch.empty, call.sizes, call.device
        return [empty(_shape(dims, sizes), dtype=dtype, device=device) for _, dims, dtype in self._fresh]

    def check(self, fresh: list[Any], call: Call) -> None:
        """Raise :class:`WrongResult` unless returned values have the contract's count, shapes, dtypes and device."""
        if len(fresh) != len(self._fresh):
            raise WrongResult(f"returned {len(fresh)} values for {len(self._fresh)} outputs")
        for value, (name, dims, dtype) in zip(fresh, self._fresh, strict=True):
            if dims is None:
                continue
            found = (tuple(getattr(value, "shape", ())), getattr(value, "dtype", None), getattr(value, "device", None))
            if found != (_shape(dims, call.sizes), dtype, call.device):
                raise WrongResult(f"output {name} is {found}, not {(_shape(dims, call.sizes), dtype, call.device)}")

    def arrange(self, fresh: list[Any], call: Call, returns: Returns) -> Any:
        """The value for the caller: one output bare, several as a tuple, none as None."""
        if not self.has_mutated:
            return fresh[0] if len(fresh) == 1 else tuple(fresh)
        if returns == "fresh":
            return (None, fresh[0])[len(fresh)] if len(fresh) < 2 else tuple(fresh)
        rest = iter(fresh)
        values = [next(rest) if position is None else call.args[position] for position in self._order]
        return values[0] if len(values) == 1 else tuple(values)


def _dims(shape: tuple[str, ...], slots: dict[str, int], constants: dict[str, int]) -> tuple[tuple[bool, int], ...]:
    """Per dimension: (varies, slot among the var axes or fixed size)."""
    return tuple((axis in slots, slots[axis] if axis in slots else constants[axis]) for axis in shape)


def _shape(dims: tuple[tuple[bool, int], ...] | None, sizes: tuple[int, ...]) -> tuple[int, ...]:
    if dims is None:
        raise WrongResult("a scalar output cannot be a destination buffer")
    return tuple([sizes[value] if varies else value for varies, value in dims])


def _detached(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.detach() if getattr(value, "requires_grad", False) else value for value in args)


def _as_list(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return list(result)
    return [] if result is None else [result]

"""Read a call against a definition. In: positional and keyword arguments. Out: arguments in order, sizes, or why not.

Checks everything that an index entry takes for granted: types, ranks, dtypes, fixed sizes, contiguity, one device, no
gradient, no shared memory with an input that is changed in place. Runs before every served call, hence the flat loops.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from schemas.definition import Definition


class Call(NamedTuple):
    """A call that fits: arguments in the definition's order, var axis sizes in its axis order, the common device."""

    args: tuple[Any, ...]
    sizes: tuple[int, ...]
    device: Any


class Misfit(NamedTuple):
    """Why a call is not what the definition describes: a reason to count by, a detail to read."""

    reason: str
    detail: str


class Signature:
    """The calling side of a definition. ``unusable`` says why no call can ever be matched; normally it is empty."""

    def __init__(self, definition: "Definition") -> None:
        import torch

        self._grad_enabled = torch.is_grad_enabled
        self._cpu = torch.device("cpu")
        self.names = tuple(definition.inputs)
        self.var_axes = definition.var_axes
        self._tensors = [_TensorCheck(definition, torch, name) for name in _tensor_names(definition)]
        self._scalars = [
            (self.names.index(name), _scalar_types(spec.dtype), name)
            for name, spec in definition.inputs.items()
            if spec.shape is None
        ]
        self._positions = tuple(check.position for check in self._tensors)
        self._mutable = [check for check in self._tensors if check.name in definition.mutates]
        shown = {slot for check in self._tensors for _, slot in check.free}
        lost = [name for slot, name in enumerate(self.var_axes) if slot not in shown]
        self.unusable = f"no input shows the size of {', '.join(lost)}" if lost else ""

    def read(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call | Misfit:
        """The call in the definition's terms, or the reason why it does not fit. Never raises for what it is given."""
        if kwargs or len(args) != len(self.names):
            merged = self._merged(args, kwargs)
            if isinstance(merged, Misfit):
                return merged
            args = merged
        for position, allowed, name in self._scalars:
            if type(args[position]) not in allowed:
                return Misfit("type", f"{name} is a {type(args[position]).__name__}, not a {allowed[0].__name__}")
        sizes = [-1] * len(self.var_axes)
        for check in self._tensors:
            misfit = check.bind(args[check.position], sizes)
            if misfit is not None:
                return misfit
        return self._together(tuple(args), tuple(sizes))

    def _merged(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any] | Misfit:
        rest = self.names[len(args) :]
        if len(args) > len(self.names) or kwargs.keys() != set(rest):
            given = [*(f"#{position}" for position in range(len(args))), *kwargs]
            return Misfit("arguments", f"given {', '.join(given)}; the inputs are {', '.join(self.names)}")
        return [*args, *(kwargs[name] for name in rest)]

    def _together(self, args: tuple[Any, ...], sizes: tuple[int, ...]) -> Call | Misfit:
        """What no tensor shows alone: one device, no gradient to keep, no memory shared with a mutated input."""
        device = args[self._positions[0]].device if self._positions else self._cpu
        for position in self._positions[1:]:
            if args[position].device != device:
                return Misfit("device", f"{self.names[position]} is on {args[position].device}, others on {device}")
        if self._grad_enabled():
            for position in self._positions:
                if args[position].requires_grad:
                    return Misfit("gradient", f"{self.names[position]} requires a gradient")
        return (self._overlap(args) if self._mutable else None) or Call(args, sizes, device)

    def _overlap(self, args: tuple[Any, ...]) -> Misfit | None:
        spans = {check.name: _span(args[check.position]) for check in self._tensors}
        for check in self._mutable:
            low, high = spans[check.name]
            for name, (start, end) in spans.items():
                if name != check.name and low < end and start < high:
                    return Misfit("aliasing", f"{check.name} is changed in place and shares memory with {name}")
        return None


class _TensorCheck:
    """Type, dtype, layout and shape of one tensor input."""

    def __init__(self, definition: "Definition", torch: Any, name: str) -> None:
        shape = definition.inputs[name].shape or ()
        constants, slots = definition.const_axes, {axis: slot for slot, axis in enumerate(definition.var_axes)}
        self.name, self.rank, self.axes = name, len(shape), definition.var_axes
        self.position = list(definition.inputs).index(name)
        self.dtype = torch_dtype(torch, definition.inputs[name].dtype)
        # Exact types only: a distributed, fake or traced tensor is not what was measured.
        self.types = (torch.Tensor, torch.nn.Parameter)
        self.fixed = tuple((dim, constants[axis]) for dim, axis in enumerate(shape) if axis in constants)
        self.whole = tuple(constants[axis] for axis in shape) if len(self.fixed) == self.rank else None
        self.free = tuple((dim, slots[axis]) for dim, axis in enumerate(shape) if axis in slots)

    def bind(self, value: Any, sizes: list[int]) -> Misfit | None:
        """Write the var axis sizes that this tensor shows into ``sizes``; the first thing that is wrong, or None."""
        if type(value) not in self.types:
            return Misfit("type", f"{self.name} is a {type(value).__name__}, not a plain tensor")
        if value.dtype is not self.dtype:
            return Misfit("dtype", f"{self.name} is {value.dtype}, not {self.dtype}")
        if not value.is_contiguous():
            return Misfit("layout", f"{self.name} is not contiguous")
        shape = value.shape
        return None if shape == self.whole else self._bind_shape(shape, sizes)

    def _bind_shape(self, shape: Sequence[int], sizes: list[int]) -> Misfit | None:
        if len(shape) != self.rank:
            return Misfit("shape", f"{self.name} has {len(shape)} dimensions, not {self.rank}")
        for dim, size in self.fixed:
            if shape[dim] != size:
                return Misfit("shape", f"{self.name} has size {shape[dim]} in dimension {dim}, not {size}")
        for dim, slot in self.free:
            size = shape[dim]
            if sizes[slot] != size:
                if sizes[slot] >= 0:
                    return Misfit("shape", f"{self.name} says {self.axes[slot]}={size}, another input {sizes[slot]}")
                sizes[slot] = size
        return None


def torch_dtype(torch: Any, dtype: str) -> Any:
    """torch's name for a dtype of the contract; one that this torch lacks matches nothing (None)."""
    return getattr(torch, "float4_e2m1fn_x2" if dtype == "float4_e2m1" else dtype, None)


def _tensor_names(definition: "Definition") -> list[str]:
    return [name for name, spec in definition.inputs.items() if spec.shape is not None]


def _scalar_types(dtype: str) -> tuple[type, ...]:
    """Python types that may stand for a scalar input; True is no number here."""
    if "float" in dtype:
        return (float, int)
    return (int,) if "int" in dtype else (bool,)


def _span(value: Any) -> tuple[int, int]:
    start = value.data_ptr()
    return start, start + value.numel() * value.element_size()

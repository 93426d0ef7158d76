"""What a contestant's call gave back, looked at before anything reads it: facts, no verdicts on values.

In: returned objects, expected slots, memory ranges of the inputs. Out: tensors by output name, or the first problem as
``{"rule", "output", "detail"}``. Runs in the candidate process, so nothing here may know an expected value.
"""

from collections.abc import Sequence
from typing import Any

import torch

from fib_core.device.regions import Slot, torch_dtype

Problem = dict[str, str]
Range = tuple[int, int]
_Tensor = torch.Tensor


def collect(
    returned: Any, buffers: Sequence[Any], wanted: Sequence[Slot], destination_passing: bool
) -> tuple[Problem | None, dict[str, Any]]:
    """Name the results. A value-returning function whose every output is a mutated input may return anything."""
    if destination_passing or not wanted:
        return None, {slot.name: buffer for slot, buffer in zip(wanted, buffers, strict=False)}
    values = list(returned) if type(returned) in (tuple, list) else [returned]
    if len(values) != len(wanted):
        detail = f"{len(values)} values returned, {len(wanted)} expected"
        return {"rule": "count", "output": wanted[0].name, "detail": detail}, {}
    return None, {slot.name: value for slot, value in zip(wanted, values, strict=True)}


def inspect(
    found: dict[str, Any], slots: dict[str, Slot], inputs: Sequence[Range], mutated: frozenset[str]
) -> Problem | None:
    """First problem over all outputs, in the order type, layout, shape, dtype, overlap with inputs."""
    for check in (_tensor_type, _layout, _shape, _dtype):
        for name, tensor in found.items():
            detail = check(tensor, slots[name])
            if detail:
                return {"rule": check.__name__.removeprefix("_"), "output": name, "detail": detail}
    for name, tensor in found.items():
        if name not in mutated and any(_overlap(memory_of(tensor), taken) for taken in inputs):
            return {"rule": "input_alias", "output": name, "detail": "shares memory with an input"}
    return None


def memory_of(tensor: Any) -> Range:
    """Address range of the whole storage behind a tensor."""
    storage = _Tensor.untyped_storage(tensor)
    start = storage.data_ptr()
    return start, start + storage.nbytes()


def _overlap(one: Range, other: Range) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _tensor_type(tensor: Any, slot: Slot) -> str:
    if type(tensor) is _Tensor:
        return ""
    return f"a {type(tensor).__name__} instead of a torch.Tensor"


def _layout(tensor: Any, slot: Slot) -> str:
    plain = tensor.layout is torch.strided and tensor.device.type == "cpu" and not tensor.is_neg()
    return "" if plain else f"{tensor.layout} on {tensor.device}, expected a strided tensor on the device of the inputs"


def _shape(tensor: Any, slot: Slot) -> str:
    got = tuple(tensor.shape)
    return "" if got == slot.shape else f"shape {list(got)}, expected {list(slot.shape)}"


def _dtype(tensor: Any, slot: Slot) -> str:
    return "" if tensor.dtype is torch_dtype(slot.dtype) else f"dtype {tensor.dtype}, expected {slot.dtype}"

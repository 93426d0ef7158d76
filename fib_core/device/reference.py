"""What is right: runs a definition's reference, in fp64 where it can be, and says where it could not.

In: a definition, inputs by name. Out: expected outputs by name, with their precision. Runs in the referee only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from fib_core.device.compare import check_reference
from fib_core.errors import ContractError
from schemas.definition import Definition

_WIDENED = (torch.float32, torch.float16, torch.bfloat16)
# fp8 inputs stay as they are: a reference dequantises them by their scales, which are widened. A choice (an index, a
# token) may differ between precisions where two values nearly tie, so what is compared for equality is not widened.
_WIDE_RULES = ("elementwise", "lse", "low_precision")
_WIDE_BYTES_MAX = 2 << 30


@dataclass(frozen=True)
class Expected:
    """Outputs by name; ``precision`` is that of the inputs that the reference ran on, ``why`` it is not float64."""

    outputs: dict[str, Any]
    precision: Literal["float64", "declared"]
    why: str = ""


def compile_reference(definition: Definition) -> Callable[..., Any]:
    """The ``run`` function of the definition's reference source."""
    scope: dict[str, Any] = {"__name__": f"reference_of_{definition.name}"}
    try:
        exec(compile(definition.reference, f"<reference of {definition.name}>", "exec"), scope)
    except Exception as error:
        raise ContractError(f"{definition.name}: the reference does not load: {error!r}") from error
    run: Callable[..., Any] = scope["run"]
    return run


def expected_outputs(definition: Definition, run: Callable[..., Any], inputs: dict[str, Any]) -> dict[str, Any]:
    """Outputs by name, as :func:`expect` finds them."""
    return expect(definition, run, inputs).outputs


def expect(definition: Definition, run: Callable[..., Any], inputs: dict[str, Any]) -> Expected:
    """Run the reference on inputs widened to fp64 if its rules, the memory and the reference allow, else as declared.

    Raises :class:`ContractError` for a reference that fails on declared dtypes, writes its inputs, or yields
    undeclared non-finite values.
    """
    why = _unwidened(definition, inputs)
    if not why:
        try:
            raw = _call(run, {name: _widen(value) for name, value in inputs.items()})
            return Expected(_checked(definition, raw), "float64")
        except ContractError:
            raise
        except Exception as error:  # noqa: BLE001 (foreign code: asserts on dtypes, mixed dtypes ...)
            why = f"on fp64 inputs the reference raised {type(error).__name__}: {_first_line(error)}"
    return Expected(_checked(definition, _declared(definition, run, inputs)), "declared", why)


def _unwidened(definition: Definition, inputs: dict[str, Any]) -> str:
    """Why fp64 is not even tried; empty if it is."""
    kinds = {rule.kind for rule in definition.policy.outputs.values()} - set(_WIDE_RULES)
    if kinds:
        return f"an output is judged by {', '.join(sorted(kinds))}"
    size = sum(8 * value.numel() for value in inputs.values() if _widens(value))
    return f"{size} bytes of fp64 inputs, {_WIDE_BYTES_MAX} allowed" if size > _WIDE_BYTES_MAX else ""


def _declared(definition: Definition, run: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    try:
        return _call(run, inputs)
    except ContractError:
        raise
    except Exception as error:
        raise ContractError(f"{definition.name}: the reference raised {type(error).__name__}: {error}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:200]


def _call(run: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    before = {name: value._version for name, value in tensors.items()}
    with torch.no_grad():
        raw = run(*inputs.values())
    written = [name for name, value in tensors.items() if value._version != before[name]]
    if written:
        raise ContractError(f"the reference writes to its inputs {', '.join(written)}; references are functional")
    return raw


def _widens(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in _WIDENED


def _widen(value: Any) -> Any:
    return value.to(torch.float64) if _widens(value) else value


def _checked(definition: Definition, raw: Any) -> dict[str, Any]:
    values = list(raw.values()) if isinstance(raw, dict) else list(raw) if isinstance(raw, tuple | list) else [raw]
    if len(values) != len(definition.outputs):
        counts = f"{len(values)} values, {len(definition.outputs)} declared"
        raise ContractError(f"{definition.name}: the reference returns {counts}")
    outputs = dict(zip(definition.outputs, values, strict=True))
    for name, value in outputs.items():
        if not isinstance(value, torch.Tensor):
            raise ContractError(f"{definition.name}: the reference returns a {type(value).__name__} for {name}")
        check_reference(value, definition.policy.outputs[name], name)
    return outputs

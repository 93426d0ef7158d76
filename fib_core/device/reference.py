"""What is right: runs a definition's reference, in fp64 where it can be.

In: a definition, inputs by name. Out: expected outputs by name. Runs in the referee only.
"""

from collections.abc import Callable
from typing import Any

import torch

from fib_core.device.compare import check_reference
from fib_core.errors import ContractError
from schemas.definition import Definition

_WIDENED = (torch.float32, torch.float16, torch.bfloat16)
_WIDE_RULES = ("elementwise", "lse")


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
    """Outputs by name: in fp64 if every rule compares element by element and the reference stands it, else as given."""
    if all(rule.kind in _WIDE_RULES for rule in definition.policy.outputs.values()):
        wide = {name: _widen(value) for name, value in inputs.items()}
        try:
            return _checked(definition, _call(run, wide))
        except ContractError:
            raise
        except Exception:  # noqa: BLE001 (asserts on dtypes, mixed dtypes ...: then the declared dtypes it is)
            pass
    try:
        raw = _call(run, inputs)
    except ContractError:
        raise
    except Exception as error:
        raise ContractError(f"{definition.name}: the reference raised {type(error).__name__}: {error}") from error
    return _checked(definition, raw)


def _call(run: Callable[..., Any], inputs: dict[str, Any]) -> Any:
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    before = {name: value._version for name, value in tensors.items()}
    with torch.no_grad():
        raw = run(*inputs.values())
    written = [name for name, value in tensors.items() if value._version != before[name]]
    if written:
        raise ContractError(f"the reference writes to its inputs {', '.join(written)}; references are functional")
    return raw


def _widen(value: Any) -> Any:
    widen = isinstance(value, torch.Tensor) and value.dtype in _WIDENED
    return value.to(torch.float64) if widen else value


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

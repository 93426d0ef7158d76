"""Constraint expressions over axis sizes, evaluated without ``eval``.

In: text such as ``M <= 64 and N % 16 == 0`` and bound axes. Out: True, False, or None where the text speaks of more
than axis sizes (tensor values, attributes, calls): that is decided where tensors exist.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


class _Undecidable(Exception):
    """The expression needs more than axis sizes."""


def holds(text: str, axes: Mapping[str, int]) -> bool | None:
    """Truth of one constraint under ``axes``; None if sizes alone do not tell. A division by zero is False."""
    try:
        return bool(_value(_parsed(text), axes))
    except (_Undecidable, SyntaxError, ValueError, RecursionError, OverflowError):
        return None
    except ZeroDivisionError:
        return False


def violated(texts: Sequence[str], axes: Mapping[str, int], undecidable: bool = False) -> str | None:
    """The first constraint that is false under ``axes``; None if none is. ``undecidable`` counts unknowns as false."""
    refused = (False, None) if undecidable else (False,)
    return next((text for text in texts if holds(text, axes) in refused), None)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _value(node: ast.expr, axes: Mapping[str, int]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name) and node.id in axes:
        return axes[node.id]
    maker = _NODES.get(type(node))
    if maker is None:
        raise _Undecidable
    return maker(node, axes)


def _binary(node: Any, axes: Mapping[str, int]) -> Any:
    if type(node.op) not in _BINARY:
        raise _Undecidable
    return _BINARY[type(node.op)](_value(node.left, axes), _value(node.right, axes))


def _unary(node: Any, axes: Mapping[str, int]) -> Any:
    value = _value(node.operand, axes)
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(node.op, ast.USub):
        return -value
    raise _Undecidable


def _boolean(node: Any, axes: Mapping[str, int]) -> bool:
    parts = (bool(_value(part, axes)) for part in node.values)
    return all(parts) if isinstance(node.op, ast.And) else any(parts)


def _compare(node: Any, axes: Mapping[str, int]) -> bool:
    values = [_value(item, axes) for item in (node.left, *node.comparators)]
    if any(type(op) not in _COMPARE for op in node.ops):
        raise _Undecidable
    return all(_COMPARE[type(op)](a, b) for op, a, b in zip(node.ops, values, values[1:], strict=False))


def _sequence(node: Any, axes: Mapping[str, int]) -> tuple[Any, ...]:
    return tuple(_value(item, axes) for item in node.elts)


_NODES: dict[type[ast.expr], Callable[[Any, Mapping[str, int]], Any]] = {
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
}

"""Constraint expressions evaluated without ``eval``: sizes, comparisons, shapes, and captured index arrays.

In: text such as ``M <= 64 and N in (8, 16)`` or ``total == indptr[-1].item()``, and what is known of its names. Out: a
value or a truth; "not known" where a part is not there or not in the small language. Nothing a text says is executed.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

LIMIT = 2**63

Shapes = Mapping[str, tuple[int, ...]]
_NO_SHAPES: Shapes = {}


class Unknown(Exception):
    """The expression needs a value that is not there (a blob) or uses something outside the small language."""


class _DividedByZero(Unknown):
    """Known to be meaningless, whatever else is known."""


class _Known(NamedTuple):
    names: Mapping[str, Any]
    shapes: Shapes


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
}


def evaluate(text: str, names: Mapping[str, Any], shapes: Shapes = _NO_SHAPES) -> int:
    """Whole number or truth of an expression over ``names`` (sizes and arrays) and ``x.shape[i]`` (``shapes``)."""
    value = _evaluated(text, names, shapes)
    if not isinstance(value, int):
        raise Unknown(f"{value} is no whole number")
    return value


def holds(text: str, axes: Mapping[str, int]) -> bool | None:
    """Truth of one constraint under ``axes``; None if sizes alone do not tell. A division by zero is False."""
    try:
        return bool(_evaluated(text, axes, _NO_SHAPES))
    except _DividedByZero:
        return False
    except Unknown:
        return None


def violated(texts: Sequence[str], axes: Mapping[str, int], undecidable: bool = False) -> str | None:
    """The first constraint that is false under ``axes``; None if none is. ``undecidable`` counts unknowns as false."""
    refused = (False, None) if undecidable else (False,)
    return next((text for text in texts if holds(text, axes) in refused), None)


def violations(texts: Sequence[str], names: Mapping[str, Any], shapes: Shapes) -> list[str]:
    """Sentences for the constraints that are certainly false, with the numbers that make them so."""
    problems = []
    for text in texts:
        try:
            true = bool(_evaluated(text, names, shapes))
        except Unknown:
            continue
        if not true:
            problems.append(f"constraint `{text}` does not hold{_where(text, names)}")
    return problems


def names_in(text: str) -> list[str]:
    """Names that an expression mentions, in order."""
    return list(dict.fromkeys(node.id for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)))


def _where(text: str, names: Mapping[str, Any]) -> str:
    known = [f"{name} = {_shown(names[name])}" for name in names_in(text) if name in names]
    return ": " + ", ".join(known) if known else ""


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"[.. {int(value.reshape(-1)[-1])}]" if value.size else "[]"


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _evaluated(text: str, names: Mapping[str, Any], shapes: Shapes) -> int | float:
    try:
        return _value(_parsed(text), _Known(names, shapes))
    except ZeroDivisionError as error:
        raise _DividedByZero(str(error)) from error
    except (SyntaxError, RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise Unknown(str(error)) from error


def _value(node: ast.expr, known: _Known) -> int | float:
    maker = _NODES.get(type(node))
    if maker is None:
        raise Unknown(f"{type(node).__name__} is outside the small language")
    return maker(node, known)


def _constant(node: Any, _: _Known) -> int | float:
    if not isinstance(node.value, int | float):
        raise Unknown("a text is not a number")
    return _bounded(node.value)


def _name(node: Any, known: _Known) -> int:
    return _integer(_looked_up(node.id, known.names))


def _binary(node: Any, known: _Known) -> int | float:
    if type(node.op) not in _BINARY:
        raise Unknown(f"{type(node.op).__name__} is outside the small language")
    return _bounded(_BINARY[type(node.op)](_value(node.left, known), _value(node.right, known)))


def _unary(node: Any, known: _Known) -> int | float:
    value = _value(node.operand, known)
    if isinstance(node.op, ast.Not):
        return not value
    if isinstance(node.op, ast.USub):
        return -value
    raise Unknown(f"{type(node.op).__name__} is outside the small language")


def _boolean(node: Any, known: _Known) -> bool:
    parts = (bool(_value(part, known)) for part in node.values)
    return all(parts) if isinstance(node.op, ast.And) else any(parts)


def _compare(node: Any, known: _Known) -> bool:
    sides = [node.left, *node.comparators]
    return all(_pair(op, sides[i], sides[i + 1], known) for i, op in enumerate(node.ops))


def _pair(op: ast.cmpop, left: ast.expr, right: ast.expr, known: _Known) -> bool:
    if isinstance(op, ast.In | ast.NotIn):
        if not isinstance(right, ast.Tuple | ast.List | ast.Set):
            raise Unknown("membership is decided for written-out values only")
        found = _value(left, known) in [_value(item, known) for item in right.elts]
        return found is isinstance(op, ast.In)
    if type(op) not in _COMPARE:
        raise Unknown(f"{type(op).__name__} is outside the small language")
    return _COMPARE[type(op)](_value(left, known), _value(right, known))


def _call(node: Any, known: _Known) -> int | float:
    """``x[i].item()``, the one call there is."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return _value(inner, known)
    raise Unknown("a call is outside the small language")


def _subscript(node: Any, known: _Known) -> int:
    """``x[i]`` and ``x.shape[i]``."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=index):
            return _pick(_looked_up(name, known.shapes), _value(index, known))
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return _pick(_looked_up(name, known.names), _value(index, known))
    raise Unknown("only named arrays and shapes have elements")


def _pick(values: Any, index: int | float) -> int:
    if isinstance(values, int) or not isinstance(index, int) or not -len(values) <= index < len(values):
        raise Unknown("no such element")
    return _integer(values[index])


def _looked_up(name: str, table: Mapping[str, Any]) -> Any:
    if name not in table:
        raise Unknown(f"{name} is not known")
    return table[name]


def _integer(value: Any) -> int:
    if isinstance(value, int) or getattr(value, "ndim", None) == 0:
        return int(value)
    raise Unknown("an array is not a number")


def _bounded(value: int | float) -> int | float:
    if abs(value) >= LIMIT:
        raise Unknown("number beyond 64 bits")
    return value


_NODES: dict[type[ast.expr], Callable[[Any, _Known], int | float]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.Call: _call,
    ast.Subscript: _subscript,
}

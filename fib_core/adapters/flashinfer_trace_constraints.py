"""Constraints of a definition, evaluated without ``eval``: integers, comparisons, shapes, and captured index arrays.

In: an expression and a lookup of names. Out: a value, or Unknown when a part of it is not known or not allowed.
Nothing that a definition says is ever executed.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

LIMIT = 2**63


class Unknown(Exception):
    """The expression needs a value that is not there (a blob) or uses something outside the small language."""


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def evaluate(text: str, names: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Value of an expression over axis sizes (``names``), ``x.shape[i]`` (``shapes``) and arrays in ``names``."""
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, names, shapes)
    except (SyntaxError, RecursionError, MemoryError, ValueError, ZeroDivisionError) as error:
        raise Unknown(str(error)) from error


def names_in(text: str) -> list[str]:
    """Names that an expression mentions, in order."""
    nodes = ast.walk(ast.parse(text.strip(), mode="eval"))
    return list(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))


def violations(
    constraints: tuple[str, ...], names: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> list[str]:
    """Sentences for the constraints that are certainly false."""
    problems = []
    for text in constraints:
        try:
            holds = bool(evaluate(text, names, shapes))
        except Unknown:
            continue
        if not holds:
            problems.append(f"constraint `{text}` does not hold{_where(text, names)}")
    return problems


def _where(text: str, names: Mapping[str, Any]) -> str:
    known = [f"{name} = {_shown(names[name])}" for name in names_in(text) if name in names]
    return ": " + ", ".join(known) if known else ""


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"[.. {int(value.reshape(-1)[-1])}]" if value.size else "[]"


def _value(node: ast.expr, names: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return _bounded(number)
        case ast.Name(id=name):
            return _integer(_known(name, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _bounded(_BINARY[type(op)](_value(left, names, shapes), _value(right, names, shapes)))
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, names, shapes)
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return _truth(node, names, shapes)
    return _element(node, names, shapes)


def _truth(node: ast.expr, names: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    match node:
        case ast.Compare():
            return _comparison(node, names, shapes)
        case ast.BoolOp(op=op, values=values):
            results = [bool(_value(value, names, shapes)) for value in values]
            return all(results) if isinstance(op, ast.And) else any(results)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _value(inner, names, shapes)
    raise Unknown(f"{type(node).__name__} is outside the small language")


def _comparison(node: ast.Compare, names: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    values = [_value(item, names, shapes) for item in [node.left, *node.comparators]]
    if not all(type(op) in _COMPARE for op in node.ops):
        raise Unknown("comparison outside the small language")
    return all(_COMPARE[type(op)](values[i], values[i + 1]) for i, op in enumerate(node.ops))


def _element(node: ast.expr, names: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> int:
    """``x[i]``, ``x[i].item()`` and ``x.shape[i]``."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return _value(inner, names, shapes)
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=index):
            return _pick(_known(name, shapes), _value(index, names, shapes))
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            return _pick(_known(name, names), _value(index, names, shapes))
    raise Unknown(f"{type(node).__name__} is outside the small language")


def _pick(values: Any, index: int) -> int:
    if isinstance(values, int) or not -len(values) <= index < len(values):
        raise Unknown("no such element")
    return _integer(values[index])


def _known(name: str, table: Mapping[str, Any]) -> Any:
    if name not in table:
        raise Unknown(f"{name} is not known")
    return table[name]


def _integer(value: Any) -> int:
    if isinstance(value, int) or getattr(value, "ndim", None) == 0:
        return int(value)
    raise Unknown("an array is not a number")


def _bounded(value: int) -> int:
    if abs(value) >= LIMIT:
        raise Unknown("number beyond 64 bits")
    return value

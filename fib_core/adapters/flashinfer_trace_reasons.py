"""Schema violations in plain words: one sentence per problem, field path first.

In: a raw JSON value and a record type. Out: the record, or sentences. Knows pydantic's error vocabulary, no format.
"""

import warnings
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

MAX_SENTENCES = 6

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "tuple_type": "a list",
    "list_type": "a list",
}

M = TypeVar("M", bound=BaseModel)


def parsed(model: type[M], raw: Any) -> M | str:
    """Validate; a failure comes back as sentences joined by ``; ``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ast.parse warns about other people's escapes
            return model.model_validate(raw)
    except ValidationError as error:
        return joined(sentences(error, raw))
    except (RecursionError, MemoryError, ValueError, OverflowError):
        return "reference or constraints: nested too deeply to be parsed"


def joined(problems: list[str]) -> str:
    """Sentences as one reason, a long tail counted instead of listed."""
    rest = len(problems) - MAX_SENTENCES
    return "; ".join(problems[:MAX_SENTENCES]) + (f"; and {rest} more" if rest > 0 else "")


def sentences(error: ValidationError, raw: Any) -> list[str]:
    """One sentence per field; alternatives of a union that were not meant are dropped."""
    result: dict[str, str] = {}
    for item in error.errors(include_url=False):
        if _other_branch(item["loc"], raw):
            continue
        path = _path(item["loc"], raw, item["type"] == "missing")
        if path not in result or item["loc"][-1:] == ("float",):
            result[path] = _words(item)
    return [f"{path}: {words}" if path else words for path, words in result.items()]


def found(value: Any) -> str:
    """A value for people, never more than a few words."""
    if value is None:
        return "null"
    if isinstance(value, dict | list | tuple):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _words(item: Any) -> str:
    kind, value, context = item["type"], item["input"], item.get("ctx", {})
    if kind == "missing":
        return "missing"
    if kind == "value_error":
        words = str(context["error"])
        return words if len(words) <= 200 else f"{words[:120]} ... {words[-60:]}"
    if kind == "literal_error":
        return _not_among(item["loc"], value, str(context["expected"]))
    if kind == "union_tag_invalid":
        return f"type {found(context['tag'])} is not one of {context['expected_tags']}"
    if kind == "union_tag_not_found":
        return "type: missing"
    return _plain_words(item["loc"], kind, value, context, str(item["msg"]))


def _not_among(loc: tuple[int | str, ...], value: Any, expected: str) -> str:
    choices = expected.replace(" or ", ", ")
    if loc[0] == "axes":
        return f"{found(value)} is neither const nor var"
    if choices.count(",") > 6:
        return f"{found(value)} is not a supported {loc[-1]}"
    return f"{found(value)} is not {'one of ' if ',' in choices else ''}{choices}"


def _plain_words(
    loc: tuple[int | str, ...], kind: str, value: Any, context: dict[str, Any], message: str
) -> str:
    if kind in _EXPECTED and loc[-1:] == ("float",):
        return f"expected a number or true or false, found {found(value)}"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, found {found(value)}"
    if kind in ("string_too_short", "too_short"):
        return "must not be empty"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}, found {found(value)}"
    if kind == "extra_forbidden":
        return "is not a known key here"
    return message[:1].lower() + message[1:]


def _other_branch(loc: tuple[int | str, ...], raw: Any) -> bool:
    """True for the axis alternative (const or var) that was not meant; an unknown type keeps the complaint about it."""
    if len(loc) < 3 or loc[0] != "axes" or loc[2] not in ("AxisConst", "AxisVar"):
        return False
    axis = raw["axes"][loc[1]] if isinstance(raw, dict) else None
    if not isinstance(axis, dict):
        return loc[2] != "AxisConst"
    kind = axis.get("type", "const" if "value" in axis else "var")
    if kind not in ("const", "var"):
        return loc[3:] != ("type",)
    return loc[2] != ("AxisConst" if kind == "const" else "AxisVar")


def _path(loc: tuple[int | str, ...], raw: Any, missing: bool) -> str:
    """Dotted path through the raw value; pydantic's names of union members are not part of it."""
    parts: list[str] = []
    for index, step in enumerate(loc):
        last = index == len(loc) - 1
        if isinstance(raw, dict) and step in raw:
            raw = raw[step]
        elif isinstance(raw, list) and isinstance(step, int):
            raw = raw[step] if step < len(raw) else None
        elif not (last and missing):
            continue
        parts.append(str(step))
    return ".".join(parts)

"""Single files that a person names on the command line: a definition, a solution, workload rows.

Whole datasets come through the reader of the public format; here one bad file is an error with its place.
"""

import json
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from fib_core.errors import ContractError
from schemas.base import PublicRecord
from schemas.definition import Definition
from schemas.solution import Solution
from schemas.trace import PublicTrace
from schemas.workload import PublicWorkload

Model = TypeVar("Model", bound=PublicRecord)


def load_definition(path: Path) -> Definition:
    """Read one definition; raises ContractError with file and line."""
    return _parse(Definition, _text(path), str(path), 0)


def load_solution(path: Path) -> Solution:
    """Read one solution; raises ContractError with file and line."""
    return _parse(Solution, _text(path), str(path), 0)


def load_workload_rows(path: Path) -> list[PublicWorkload]:
    """Read workload rows: public trace lines or bare workloads, one JSON object a line."""
    rows = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip():
            rows.append(_row(line, str(path), number))
    if not rows:
        raise ContractError("no workload rows in this file", str(path))
    return rows


def _row(line: str, file: str, number: int) -> PublicWorkload:
    try:
        body = json.loads(line)
    except json.JSONDecodeError as error:
        raise ContractError(f"not JSON: {error.msg} (column {error.colno})", file, number) from error
    if isinstance(body, dict) and "workload" in body:
        return _parse(PublicTrace, line, file, number).workload
    return _parse(PublicWorkload, line, file, number)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ContractError(f"cannot be read: {error}", str(path)) from error


def _parse(model: type[Model], text: str, file: str, line: int) -> Model:
    try:
        body = json.loads(text)
    except json.JSONDecodeError as error:
        raise ContractError(f"not JSON: {error.msg} (column {error.colno})", file, line or error.lineno) from error
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or model.__name__.lower()
        raise ContractError(f"{where}: {first['msg']}", file, line) from error

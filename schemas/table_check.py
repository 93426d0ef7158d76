"""How rows meet a table contract: a frame of the good ones, every bad one with its place and its reasons.

In: a pandera model and plain dicts. Out: a polars frame and RejectedRows. Knows no particular table.
"""

from typing import Any, NamedTuple

import pandera.polars as pa
import polars as pl
from pandera.polars import DataFrameModel

Row = dict[str, Any]
_PYTHON_TYPES: dict[Any, tuple[type, ...]] = {pl.String: (str,), pl.Int64: (int,), pl.Float64: (int, float)}


class RejectedRow(NamedTuple):
    """A row that breaks its table's contract: its place in the input (from 0), the row, the reason."""

    position: int
    row: Row
    reason: str


def columns_of(model: type[DataFrameModel]) -> dict[str, Any]:
    """Column name -> polars dtype."""
    return {name: column.dtype.type for name, column in model.to_schema().columns.items()}


def validated(model: type[DataFrameModel], rows: list[Row]) -> tuple[pl.DataFrame, list[RejectedRow]]:
    """Rows that keep the contract, as a frame, and those that do not, each once with all its reasons.

    Types are checked here, value by value: a frame would silently cut 1.5 to 1 or fill a missing column with nulls.
    Always a materialised frame: on a LazyFrame pandera checks names and types only.
    """
    misfits = {place: reason for place, row in enumerate(rows) if (reason := _misfit(model, row))}
    fitting = [place for place in range(len(rows)) if place not in misfits]
    frame = pl.DataFrame([rows[place] for place in fitting], schema=columns_of(model))
    broken = {fitting[index]: reason for index, reason in _broken(model, frame).items()}
    keep = [index for index, place in enumerate(fitting) if place not in broken]
    rejected = [RejectedRow(place, rows[place], reason) for place, reason in sorted((misfits | broken).items())]
    return frame[keep], rejected


def _misfit(model: type[DataFrameModel], row: Row) -> str | None:
    columns = columns_of(model)
    if row.keys() != columns.keys():
        missing, unknown = sorted(columns.keys() - row.keys()), sorted(row.keys() - columns.keys())
        return f"columns differ: missing {missing}, unknown {unknown}"
    for name, dtype in columns.items():
        value = row[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, _PYTHON_TYPES[dtype])):
            return f"{name}: {value!r} is not {dtype}"
    return None


def _broken(model: type[DataFrameModel], frame: pl.DataFrame) -> dict[int, str]:
    """Row index -> reasons; raises what pandera raises if a failure belongs to no row."""
    try:
        model.validate(frame, lazy=True)
    except pa.errors.SchemaErrors as errors:
        found: dict[int, list[str]] = {}
        for case in errors.failure_cases.iter_rows(named=True):
            if case["index"] is None:
                raise
            place = "" if case["schema_context"] == "DataFrameSchema" else f"{case['column']}: "
            found.setdefault(case["index"], []).append(f"{place}{case['check']}")
        return {index: "; ".join(reasons) for index, reasons in found.items()}
    return {}

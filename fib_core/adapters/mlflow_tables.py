"""Rows as the JSON that MLflow's pages draw as a table. In: rows. Out: text. Needs neither MLflow nor pandas.

The form is that of ``mlflow.log_table``, {"columns": [...], "data": [[...]]}, so ``mlflow.load_table`` reads it back.
"""

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

TABLES_TAG = "mlflow.loggedArtifacts"


def table_json(rows: Sequence[dict[str, Any]]) -> str:
    """All columns that any row has, in order of first sight; what a row lacks, and NaN, is null."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    data = [[_cell(row.get(column)) for column in columns] for row in rows]
    return json.dumps({"columns": columns, "data": data}, ensure_ascii=False, allow_nan=False)


def table_tag(paths: Iterable[str]) -> str:
    """The tag by which the evaluation view finds the tables of a run."""
    return json.dumps([{"path": path, "type": "table"} for path in paths])


def _cell(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_cell(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _cell(item) for key, item in value.items()}
    return str(value)

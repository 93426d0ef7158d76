"""What a person sees on the flow run page: tables, links and progress. No decisions here.

Prefect's table shows floats unrounded, so cells are rounded for people; exact figures live in the store.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from prefect.artifacts import create_markdown_artifact, create_table_artifact

Cell = str | int | float | None


def show_table(key: str, rows: Iterable[Mapping[str, Any]], description: str) -> None:
    """One table artifact; an empty table says so instead of being left out."""
    cells = [{name: _cell(value) for name, value in row.items()} for row in rows]
    create_table_artifact(key=key, table=cells or [{"note": "no rows"}], description=description)


def show_markdown(key: str, text: str, description: str) -> None:
    """One page of Markdown."""
    create_markdown_artifact(key=key, markdown=text, description=description)


def slug(*parts: str) -> str:
    """Artifact keys allow lower-case letters, digits and dashes."""
    joined = "-".join(parts).lower()
    return "".join(letter if letter.isalnum() else "-" for letter in joined).strip("-")


def _cell(value: Any) -> Cell:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if value is None or isinstance(value, str | int):
        return value
    return str(value) if isinstance(value, UUID) else json.dumps(value, default=str)

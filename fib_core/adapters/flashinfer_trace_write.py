"""Writes a flashinfer-trace dataset folder that the public loader accepts.

In: definitions, public rows, solutions, traces. Out: files in the public layout; recipes that only we know (structured)
become captured blobs, our extension keys stay as unknown keys. Knows no pipeline and no device.
"""

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import numpy as np

from fib_core.adapters.flashinfer_trace_blobs import write_tensors
from fib_core.errors import ContractError
from fib_core.inspect_dataset import Dataset, TraceRow
from fib_core.workloads.structure import generate
from schemas.canonical import digest_of
from schemas.definition import Definition
from schemas.solution import Solution
from schemas.trace import PublicTrace
from schemas.workload import PublicWorkload, SafetensorsInput, StructuredInput


def write_dataset(
    root: Path,
    definitions: Iterable[Definition],
    workloads: Iterable[PublicTrace] = (),
    solutions: Iterable[Solution] = (),
    traces: Iterable[PublicTrace] = (),
    incumbents: Mapping[str, tuple[str, ...]] | None = None,
    blob_source: Path | None = None,
) -> None:
    """Write everything under ``root``; blobs that rows name are copied from ``blob_source`` where they exist there.

    Raises ContractError for a row whose definition is not among ``definitions``, and UnsupportedInput for a recipe that
    cannot be materialised.
    """
    known = {definition.name: definition for definition in definitions}
    authors = {}
    for definition in known.values():
        folder = root / "definitions" / _safe(definition.op_type)
        _write(folder / f"{_safe(definition.name)}.json", _pretty(definition.public_json()))
    for solution in solutions:
        authors[solution.name] = solution.author
        op_type = _of(known, solution.definition).op_type
        folder = root / "solutions" / _safe(solution.author) / _safe(op_type) / _safe(solution.definition)
        _write(folder / f"{_safe(solution.name)}.json", _pretty(solution.public_json()))
    _write_rows(root, "workloads", workloads, known, authors, blob_source)
    _write_rows(root, "traces", traces, known, authors, blob_source)
    if incumbents:
        _write(root / "incumbents.json", _pretty({name: list(names) for name, names in incumbents.items()}))


def export_dataset(dataset: Dataset, root: Path) -> None:
    """Write again what was accepted, call logs included."""
    write_dataset(
        root,
        dataset.definitions.values(),
        [row.row for row in dataset.workloads],
        dataset.solutions.values(),
        incumbents=dataset.incumbents,
        blob_source=dataset.root,
    )
    by_author: dict[str, list[PublicTrace]] = {}
    for item in dataset.traces:
        by_author.setdefault(_author(dataset, item), []).append(item.trace)
    for author, traces in by_author.items():
        names = {str(trace.solution): author for trace in traces}
        _write_rows(root, "traces", traces, dataset.definitions, names, dataset.root)
    for log in dataset.call_logs:
        if log.is_file():
            _copy(log, root / log.relative_to(dataset.root))


def _author(dataset: Dataset, row: TraceRow) -> str:
    """The folder that held the row where the layout is the public one, else the solution's author."""
    parts = PurePosixPath(row.file).parts
    solution = dataset.solutions.get(str(row.trace.solution))
    return parts[1] if len(parts) == 4 else (solution.author if solution else "unknown")


def _write_rows(
    root: Path,
    top: str,
    rows: Iterable[PublicTrace],
    known: Mapping[str, Definition],
    authors: Mapping[str, str],
    blob_source: Path | None,
) -> None:
    lines: dict[Path, list[str]] = {}
    for row in rows:
        definition = _of(known, row.definition)
        folder = root / top if row.solution is None else root / top / _safe(authors.get(row.solution, "unknown"))
        file = folder / _safe(definition.op_type) / f"{_safe(definition.name)}.jsonl"
        lines.setdefault(file, []).append(_line(root, definition, row, blob_source))
    for file, texts in lines.items():
        _write(file, "".join(texts))


def _line(root: Path, definition: Definition, row: PublicTrace, blob_source: Path | None) -> str:
    if row.workload.uuid is None:  # the public loader insists on one; the same row gets the same one
        name = UUID(hex=digest_of([row.definition, row.workload.public_json()])[7:39])
        row = row.model_copy(update={"workload": PublicWorkload(**row.workload.public_json() | {"uuid": str(name)})})
    body = row.public_json()
    body["workload"]["inputs"] |= _materialised(root, definition, row.workload)
    for recipe in row.workload.inputs.values():
        if isinstance(recipe, SafetensorsInput) and blob_source is not None:
            _copy_blob(blob_source, root, recipe.path)
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def _materialised(root: Path, definition: Definition, row: PublicWorkload) -> dict[str, Any]:
    """Write a row's structured inputs as one blob; the recipe stays beside the path, for whoever knows it."""
    recipes = {name: item for name, item in row.inputs.items() if isinstance(item, StructuredInput)}
    if not recipes:
        return {}
    path = PurePosixPath("blob/workloads") / _safe(definition.op_type) / _safe(definition.name)
    path /= f"{_safe(definition.name)}_{_safe(row.uuid or '')}.safetensors"
    write_tensors(root / path, {name: _array(definition, name, row.axes, item) for name, item in recipes.items()})
    return {
        name: item.public_json() | {"type": "safetensors", "path": path.as_posix(), "tensor_key": name}
        for name, item in recipes.items()
    }


def _array(definition: Definition, name: str, axes: dict[str, int], recipe: StructuredInput) -> Any:
    values = generate(recipe)
    shape = definition.shape_of(name, axes)
    dtype = definition.inputs[name].dtype
    if shape is None or not hasattr(np, dtype if dtype != "bool" else "bool_"):
        raise ContractError(f"{definition.name}: structured input {name} of {dtype} cannot be written as a blob")
    try:
        return values.astype(dtype).reshape(shape)
    except ValueError as error:
        raise ContractError(f"{definition.name}: {name}: {values.shape} values do not fill shape {shape}") from error


def _of(known: Mapping[str, Definition], name: str) -> Definition:
    if name not in known:
        raise ContractError(f"nothing written for {name!r}: its definition is not part of this export")
    return known[name]


def _safe(label: str) -> str:
    """A label as one path component; labels that need changing get a few digits of their digest, so none collide."""
    plain = re.sub(r"[^\w.+-]", "_", label)[:120]
    unchanged = plain == label and not plain.startswith(".") and label.isascii()
    return plain if unchanged else f"{plain.strip('.')}-{digest_of(label)[7:15]}"


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def _copy_blob(source: Path, root: Path, path: str) -> None:
    """Copy one captured file if it is there; a path that leaves the folder is refused."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts:
        raise ContractError(f"blob path {path!r} leaves the dataset folder")
    if (source / pure).is_file():
        _copy(source / pure, root / pure)


def _copy(source: Path, target: Path) -> None:
    if target.exists() and target.samefile(source):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)

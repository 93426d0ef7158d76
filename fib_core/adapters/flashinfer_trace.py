"""Reads a flashinfer-trace dataset folder, liberally: bad data is quarantined with place and reason, the rest goes on.

In: a root folder. Out: a Dataset. The layout below the four top folders is not enforced, as upstream does not. Knows no
pipeline, no device, no torch; no input makes it raise anything but ContractError for an unusable root.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

from fib_core.adapters.flashinfer_trace_blobs import BlobFolder
from fib_core.adapters.flashinfer_trace_calls import SUFFIXES, CallLogs, read_call_logs
from fib_core.adapters.flashinfer_trace_files import (
    Malformed,
    files_under,
    parse_json,
    printable,
    read_json,
    read_rows,
)
from fib_core.adapters.flashinfer_trace_reasons import found, parsed
from fib_core.adapters.flashinfer_trace_rows import (
    Contracts,
    Rejected,
    RowKind,
    kind_of,
    normalised,
    read_trace,
    read_workload,
)
from fib_core.adapters.flashinfer_trace_write import write_dataset
from fib_core.errors import ContractError
from fib_core.inspect_dataset import Dataset, TraceRow, WorkloadRow
from schemas.base import PublicRecord
from schemas.definition import Definition
from schemas.solution import Solution
from schemas.trace import QuarantinedRow

__all__ = ["CallLogs", "read_call_logs", "read_dataset", "read_definitions", "write_dataset"]

FOLDERS = ("definitions", "workloads", "solutions", "traces", "calls")
INCUMBENTS = "incumbents.json"
Progress = Callable[[str], None]
NamedKind = Literal["definition", "solution"]
M = TypeVar("M", bound=PublicRecord)


def read_dataset(root: Path, progress: Progress | None = None) -> Dataset:
    """Read everything under ``root``; ``progress`` hears each file's relative path before it is read."""
    require_dataset(root)
    return _Reading(root, progress or (lambda _: None)).run()


def read_definitions(root: Path) -> dict[str, Definition]:
    """The definitions under ``root`` by name, and nothing else; raises as :func:`read_dataset`."""
    require_dataset(root)
    return _Reading(root, lambda _: None).definitions()


def require_dataset(root: Path) -> None:
    """Raise ContractError unless ``root`` is a folder with at least one of the dataset's top folders."""
    try:
        here = {entry.name for entry in root.iterdir() if entry.is_dir()}
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise ContractError(f"not a dataset folder: {words}; give a folder with definitions/", str(root)) from error
    if not here & set(FOLDERS):
        raise ContractError(f"not a dataset folder: it holds none of {', '.join(f'{x}/' for x in FOLDERS)}", str(root))


class _Reading:
    """One pass: definitions, then solutions, then rows against them, then who the incumbents are."""

    def __init__(self, root: Path, progress: Progress) -> None:
        self.root, self.progress = root, progress
        self.quarantined: list[QuarantinedRow] = []
        self.read: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.files: dict[str, str] = {}
        self.drafts: dict[str, tuple[str, Definition | None]] = {}

    def run(self) -> Dataset:
        definitions = self.definitions()
        digests = {name: definition.digest for name, definition in definitions.items()}
        solutions = self._solutions(definitions)
        workloads, traces = self._rows(Contracts(definitions, self.drafts, digests))
        return Dataset(
            root=self.root,
            definitions=definitions,
            solutions=solutions,
            workloads=tuple(workloads),
            traces=tuple(traces),
            incumbents=self._incumbents(definitions, solutions),
            call_logs=tuple(files_under(self.root, "calls", SUFFIXES)),
            quarantined=tuple(self.quarantined),
            read=dict(self.read),
            accepted=dict(self.accepted),
            files=self.files,
        )

    def definitions(self) -> dict[str, Definition]:
        return self._named("definitions", "definition", Definition)

    def _quarantine(self, kind: Any, file: str, line: int, reason: str) -> None:
        self.quarantined.append(QuarantinedRow(file=file, line=line, kind=kind, reason=printable(reason)))

    def _relative(self, path: Path) -> str:
        return printable(path.relative_to(self.root).as_posix())

    def _named(self, folder: str, kind: NamedKind, model: type[M]) -> dict[str, M]:
        """One JSON file per record; the second of a name is quarantined unless it is the same."""
        records: dict[str, M] = {}
        for path in files_under(self.root, folder, (".json",)):
            file = self._relative(path)
            self.progress(file)
            self.read[kind] += 1
            try:
                record = self._record(path, file, kind, model)
                self._add(records, record, file, kind)
            except Malformed as error:
                self._quarantine(kind, file, error.line, error.reason)
                if kind == "definition":  # a file that tells no name is known by its own
                    self.drafts.setdefault(path.stem, (file, None))
        return records

    def _solutions(self, definitions: dict[str, Definition]) -> dict[str, Solution]:
        """Solutions whose contract is here; one without it could never be judged."""
        found = self._named("solutions", "solution", Solution)
        for name, solution in list(found.items()):
            if solution.definition not in definitions:
                draft = self.drafts.get(solution.definition)
                where = f"is quarantined ({draft[0]})" if draft else "is declared by no file under definitions/"
                self._quarantine(
                    "solution", self.files[f"solution:{name}"], 0, f"definition: {solution.definition!r} {where}"
                )
                self.accepted["solution"] -= 1
                del found[name]
        return found

    def _record(self, path: Path, file: str, kind: NamedKind, model: type[M]) -> M:
        raw = read_json(path)
        if not isinstance(raw, dict):
            raise Malformed(f"expected an object, found {found(raw)}")
        record = parsed(model, raw)
        if isinstance(record, str):
            if kind == "definition":
                self._keep_draft(raw, file)
            raise Malformed(record + _older_schema(raw, kind))
        return record

    def _add(self, records: dict[str, M], record: M, file: str, kind: NamedKind) -> None:
        name = str(getattr(record, "name"))  # noqa: B009 - both models have one
        first = records.setdefault(name, record)
        if first is not record and first.public_json() != record.public_json():
            raise Malformed(f"name: {name!r} is taken by another {kind}, {self.files[f'{kind}:{name}']}")
        self.files.setdefault(f"{kind}:{name}", file)
        self.accepted[kind] += 1

    def _keep_draft(self, raw: dict[str, Any], file: str) -> None:
        """What a quarantined definition still says about shapes, so that its rows hear their own faults too."""
        name = raw.get("name")
        if isinstance(name, str) and name:
            patched = raw | {"op_type": "unknown", "reference": "def run(): ..."}
            draft = parsed(Definition, patched)
            self.drafts.setdefault(name, (file, None if isinstance(draft, str) else draft))

    def _rows(self, contracts: Contracts) -> tuple[list[WorkloadRow], list[TraceRow]]:
        workloads: list[WorkloadRow] = []
        traces: list[TraceRow] = []
        blobs = BlobFolder(self.root)
        for path, line, text in self._lines():
            file = self._relative(path)
            kind: RowKind = "workload" if "workloads" in path.relative_to(self.root).parts else "trace"
            try:
                if isinstance(text, Malformed):
                    raise text
                row = normalised(parse_json(text), path, contracts)
                kind = kind_of(row)
                if kind == "workload":
                    workloads.append(read_workload(row, (file, line), contracts, blobs))
                else:
                    traces.append(read_trace(row, (file, line), contracts))
                self.accepted[kind] += 1
            except (Malformed, Rejected) as error:
                self._quarantine(kind, file, line, error.reason)
            self.read[kind] += 1
        return workloads, traces

    def _lines(self) -> Iterator[tuple[Path, int, str | Malformed]]:
        for folder in ("workloads", "traces"):
            for path in files_under(self.root, folder, (".jsonl",)):
                self.progress(self._relative(path))
                for line, text in read_rows(path):
                    yield path, line, text

    def _incumbents(
        self, definitions: dict[str, Definition], solutions: dict[str, Solution]
    ) -> dict[str, tuple[str, ...]]:
        """Solutions whose author is ``baseline``, overridden per definition by ``incumbents.json``."""
        proposed: dict[str, tuple[str, ...]] = {}
        for name, solution in solutions.items():
            if solution.author == "baseline":
                proposed[solution.definition] = (*proposed.get(solution.definition, ()), name)
        path = self.root / INCUMBENTS
        if not path.exists():
            return proposed
        try:
            stated = _stated_incumbents(read_json(path))
        except Malformed as error:
            self._quarantine("solution", INCUMBENTS, error.line, error.reason)
            return proposed
        for definition, names in stated.items():
            strangers = [name for name in names if name not in solutions or solutions[name].definition != definition]
            if definition not in definitions or strangers:
                what = f"no solution {strangers[0]!r} for it" if strangers else "no such definition"
                self._quarantine("solution", INCUMBENTS, 0, f"{definition}: {what}")
            else:
                proposed[definition] = names
        return proposed


def _stated_incumbents(raw: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(raw, dict):
        raise Malformed(f"expected an object, found {found(raw)}")
    for name, names in raw.items():
        if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
            raise Malformed(f"{name}: expected a list of solution names, found {found(names)}")
    return {name: tuple(names) for name, names in raw.items()}


def _older_schema(raw: dict[str, Any], kind: NamedKind) -> str:
    """A hint for files of the format's 2025 generations."""
    older = kind == "definition" and "op_type" not in raw and isinstance(raw.get("type"), str)
    return " (an older generation of the format: it called this key `type`)" if older else ""

"""The dataset folder for commands: checking and exporting, without opening the rest of the house.

Apart from ``wiring`` because ``fib check`` must start in a blink: no tracker, no cluster, no device is imported here.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fib_core.adapters.flashinfer_trace import read_call_logs, read_dataset, write_dataset
from fib_core.adapters.flashinfer_trace_export import evaluation_rows, workload_row
from fib_core.adapters.flashinfer_trace_write import export_dataset
from fib_core.collect import parse_calls
from fib_core.inspect_dataset import Dataset
from schemas.definition import Definition

__all__ = [
    "check_dataset", "evaluation_rows", "export_dataset", "of_scale", "read_dataset", "workload_row", "write_dataset",
]


def check_dataset(root: Path, progress: Callable[[str], None] | None = None) -> Dataset:
    """Read everything under ``root``, every line of its call logs too; raises ContractError for an unusable root."""
    dataset = read_dataset(root, progress)
    logs = read_call_logs(root)
    if progress and logs.files:
        progress("calls/")
    calls = parse_calls(logs.lines(), dataset.definitions)
    bad = (*calls.quarantined, *logs.quarantined)
    return replace(
        dataset,
        quarantined=(*dataset.quarantined, *bad),
        read={**dataset.read, "call": len(calls.records) + len(bad)},
        accepted={**dataset.accepted, "call": len(calls.records)},
    )


def of_scale(definition: Definition, scale: str) -> bool:
    """A definition without a ``scale:`` tag fits everywhere; ``tour:left-out`` keeps the first run short."""
    if scale and "tour:left-out" in definition.tags:
        return False
    scales = {tag.removeprefix("scale:") for tag in definition.tags if tag.startswith("scale:")}
    return not scale or not scales or scale in scales

"""Stage 1 as the orchestrator treats it: read the dataset folder and its call logs, quarantine what is bad."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core.collect import parse_calls
from fib_core.inspect_dataset import Dataset
from schemas.definition import Definition
from schemas.trace import QuarantinedRow, TraceRecord
from tasks.artifacts import show_table
from tasks.dataset import of_scale
from tasks.tables import rejected_calls
from tasks.wiring import open_call_logs, open_dataset

QUARANTINE_ROWS_SHOWN = 500


@dataclass(frozen=True)
class Gathered:
    """A dataset with its parsed call logs. ``definitions`` are those of the chosen scale only."""

    dataset: Dataset
    definitions: dict[str, Definition]
    records: dict[str, list[TraceRecord]]
    quarantined: tuple[QuarantinedRow, ...]
    calls_read: int


@task(task_run_name="collect {root.name}", cache_policy=NO_CACHE)
def collect(root: Path, scale: str) -> Gathered:
    """Read everything under ``root``; raises ContractError only if it is no dataset folder at all."""
    logger = get_run_logger()
    dataset = open_dataset(root)
    logs = open_call_logs(root)
    parsed = parse_calls(logs.lines(), dataset.definitions)
    records: defaultdict[str, list[TraceRecord]] = defaultdict(list)
    misfits = rejected_calls(parsed)
    for position, record in enumerate(parsed.records):
        if position not in misfits:
            records[record.definition].append(record)
    quarantined = (*dataset.quarantined, *parsed.quarantined, *logs.quarantined, *misfits.values())
    chosen = {name: item for name, item in dataset.definitions.items() if of_scale(item, scale)}
    gathered = Gathered(dataset, chosen, dict(records), quarantined, parsed.read_count + len(logs.quarantined))
    logger.info(
        "read %d definitions (%d of scale %s), %d solutions, %d workload rows, %d calls; quarantined %d",
        len(dataset.definitions), len(chosen), scale or "any", len(dataset.solutions), len(dataset.workloads),
        gathered.calls_read, len(quarantined),
    )  # fmt: skip
    _show(gathered)
    return gathered


def _show(gathered: Gathered) -> None:
    counts = Counter(row.kind for row in gathered.quarantined)
    rows = [row.model_dump() for row in gathered.quarantined[:QUARANTINE_ROWS_SHOWN]]
    show_table(
        "quarantine",
        rows,
        f"{len(gathered.quarantined)} rows quarantined ({dict(counts)}); good rows of the same files went on.",
    )

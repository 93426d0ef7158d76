"""Stage 3 as the orchestrator treats it: freeze the snapshot, add the stress side, store it under its digest."""

from collections.abc import Mapping, Sequence

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import ledger
from fib_core import split as room
from fib_core.errors import UnsupportedInput
from schemas.definition import Definition
from schemas.snapshot import Snapshot
from schemas.workload import Workload
from tasks.artifacts import show_table
from tasks.tables import snapshot_rows
from tasks.wiring import House


@task(task_run_name="split", cache_policy=NO_CACHE)
def split(
    house: House,
    definitions: Mapping[str, Definition],
    workloads: Sequence[Workload],
    incumbents: Mapping[str, Sequence[str]],
    weights: room.Weights,
) -> Snapshot:
    """Train, holdout and stress; the snapshot's digest is what every later number cites."""
    logger = get_run_logger()
    stress = [item for definition in definitions.values() for item in _stress(definition)]
    snapshot = room.split(workloads, definitions, incumbents, house.settings.split_key, weights, stress)
    ledger.save(house.store, "snapshots", snapshot)
    for definition in definitions.values():
        ledger.save(house.store, "definitions", definition)
    rows = snapshot_rows(snapshot)
    show_table("snapshot", rows, f"Snapshot {snapshot.digest}: {len(rows)} workloads on their sides.")
    sides = {side: sum(item.split == side for item in snapshot.workloads) for side in ("train", "holdout", "stress")}
    logger.info("snapshot %s: %s", snapshot.digest, ", ".join(f"{count} {side}" for side, count in sides.items()))
    return snapshot


def _stress(definition: Definition) -> list[Workload]:
    """Nothing where the structural inputs cannot be invented: such a definition has no stress side of ours."""
    try:
        return room.stress_workloads(definition)
    except UnsupportedInput as error:
        get_run_logger().info("no stress workloads for %s: %s", definition.name, error.reason)
        return []


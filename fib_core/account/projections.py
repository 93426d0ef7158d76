"""Beyond the op: what its speed-up is worth end to end (15), and how far times are from the roofline (1).

In: a snapshot, an index, measured times; for a projection the share of a step that the op takes and what a dispatched
call costs, both from whoever measured them. Out: rows. Invents no share and no overhead.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fib_core.account import scores
from fib_core.account.traffic import Measured, before_us_at, call_at, traffic_of
from fib_core.errors import ContractError
from schemas.base import Digest
from schemas.evaluation import Evaluation
from schemas.index import DispatchIndex, IndexedDefinition
from schemas.snapshot import Placed, Snapshot


class Overhead(NamedTuple):
    """Microseconds that dispatching adds to a call, and who measured them."""

    us: float
    source: str


def overhead_from_bench(body: Any, source: str) -> Overhead:
    """The dearest hit of the benchmark of ``apply``; raises ContractError if its own control failed, or it has none."""
    cases = body.get("cases", {}) if isinstance(body, dict) else {}
    hits = [row["overhead_us"] for name, row in cases.items() if name.startswith("hit")]
    if not hits or not body.get("control_holds"):
        raise ContractError(f"{source} is no sound measurement of apply: no hit in it, or its control failed")
    return Overhead(max(hits), f"{source}, dearest hit")


def projections(
    snapshot: Snapshot, index: DispatchIndex, by: Measured, shares: Mapping[str, float], overhead: Overhead
) -> list[dict[str, Any]]:
    """End-to-end speed-up (15) per definition whose share of a step is given, by its train traffic.

    None for a definition some of whose calls nobody timed.
    """
    rows: list[dict[str, Any]] = []
    for block in index.definitions:
        one = traffic_of(snapshot, index, block, "train", by)
        speedup, call_us = scores.weighted_speedup(one.timed), scores.call_us(one.timed)
        if block.name not in shares or speedup is None or not call_us or one.untimed:
            continue
        share = shares[block.name]
        delta = scores.overhead_share(share, overhead.us, call_us)
        rows.append(
            {
                "definition": block.name, "share_of_step": share, "weighted_speedup": speedup, "call_us": call_us,
                "overhead_us": overhead.us, "overhead_source": overhead.source, "overhead_share": delta,
                "projected_speedup": scores.amdahl(share, speedup, delta), "snapshot_digest": snapshot.digest,
                "weights": snapshot.weights, "baseline": list(one.population.baseline), "side": "train",
                "times": one.population.times,
            }
        )  # fmt: skip
    return rows


def roofline_rows(
    snapshot: Snapshot, index: DispatchIndex, by: Measured, bounds_us: Mapping[Digest, float]
) -> list[dict[str, Any]]:
    """How near the incumbent, and what serves it, are to the roofline (1): a row per workload whose bound is known."""
    rows: list[dict[str, Any]] = []
    for block in index.definitions:
        for item in (each for each in snapshot.workloads if _is_of(each, block)):
            bound_us, before_us = bounds_us.get(item.workload.digest), before_us_at(block, item, by)
            if bound_us is None or before_us is None:
                continue
            call = call_at(index, block, item, by) if item.split != "stress" else None
            now_us = call.now_us if call and call.served else None
            rows.append(
                {
                    "definition": block.name, "axes": dict(item.workload.axes), "side": item.split,
                    "roofline_us": bound_us, "incumbent_us": before_us,
                    "incumbent": scores.roofline_share(bound_us, before_us), "served_us": now_us,
                    "served": scores.roofline_share(bound_us, now_us) if now_us else None,
                    "times": by.source, "workload": item.workload.digest,
                }
            )  # fmt: skip
    return rows


def bounds_of(evaluations: Iterable[Evaluation]) -> dict[Digest, float]:
    """Workload -> its roofline in microseconds, as the evaluations recorded it (the lowest: peaks are best of many)."""
    found: dict[Digest, float] = {}
    for item in evaluations:
        if item.roofline_us is not None:
            digest = item.job.workload_digest
            found[digest] = min(found.get(digest, item.roofline_us), item.roofline_us)
    return found


def _is_of(item: Placed, block: IndexedDefinition) -> bool:
    return item.workload.definition_digest == block.definition_digest

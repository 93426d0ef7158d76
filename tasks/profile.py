"""How a profile spends its time: samples, input sets and draws per visit.

In: profile, definition, workloads. Out: VisitSettings for each stage. Counts are fixed by the harness, never by elapsed
time: a candidate must not be able to choose how often it is sampled.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from fib_core.decision.contest import VisitSettings
from fib_core.jobs import STRICT_DRAWS_MAX
from schemas.base import Digest
from schemas.decision import Profile
from schemas.definition import Definition
from schemas.evaluation import Evaluation, Stage
from schemas.snapshot import Placed
from schemas.visit import VisitRequest
from schemas.workload import Workload
from tasks.requests import limits_for, tensor_bytes
from tasks.settings import Settings

LARGE_BYTES = 64 << 20
"""Above this size of one call's tensors a single timed call on one input set has to do."""

TINY_BYTES = 8 << 20
"""Below this size a call costs microseconds: its time scatters more, and one call more costs little."""

TINY_SAMPLES = 1
"""Calls more of these in a round: the driver repeats short calls on old contents before each, so warm-ups need not."""

INCUMBENT_FACTOR = 20.0
"""A candidate's visit may take this many times the incumbent's (contract: Limits and places)."""

FIRST_VISIT_S = 1800.0
"""Bound of a visit that nothing is known about yet: declared incumbents and references."""


@dataclass(frozen=True)
class Spend:
    """Calls of one stage."""

    sample_count: int
    sampling_draws: int
    """Most draws of one row of a sampler; the judge makes no more than the row needs."""
    drawn_limit: int | None = None
    """Workloads of a sampling definition whose distribution is tested; None = all. The mask is judged on all."""


SPENDS: dict[tuple[Profile, Stage], Spend] = {
    ("quick", "screen"): Spend(sample_count=3, sampling_draws=400, drawn_limit=1),
    # Correctness of rounds is judged on every call; the distribution was tested in the screen.
    ("quick", "confirm"): Spend(sample_count=3, sampling_draws=0),
    ("full", "screen"): Spend(sample_count=10, sampling_draws=STRICT_DRAWS_MAX),
    ("full", "confirm"): Spend(sample_count=20, sampling_draws=0),
}


def visit_settings(
    settings: Settings, stage: Stage, definition: Definition, workloads: Iterable[Workload], blob_root: str | None
) -> VisitSettings:
    """Counts and limits for the visits of one definition."""
    listed = list(workloads)
    spend = SPENDS[settings.profile, stage]
    largest = max((tensor_bytes(definition, item.axes) for item in listed), default=0)
    small = largest <= LARGE_BYTES
    tiny = largest <= TINY_BYTES
    samples = (spend.sample_count + (TINY_SAMPLES if tiny and stage == "confirm" else 0)) if small else 1
    return VisitSettings(
        warmup_count=1 if small else 0,
        sample_count=samples,
        input_sets=samples + 1 if small else 1,  # every timed call meets contents that were never seen
        sampling_draws=spend.sampling_draws,
        limits=limits_for(settings, definition, listed),
        blob_root=blob_root,
    )


def candidate_limit_s(settings: Settings, incumbent: Iterable[Evaluation]) -> float:
    """max(the floor, 20 x the incumbent's visit), by the time its calls took."""
    spent_us = sum(sum(item.samples_us) + sum(item.warmup_us) for item in incumbent)
    return max(settings.visit_limit_s, INCUMBENT_FACTOR * spent_us / 1e6)


def by_draws(request: VisitRequest, profile: Profile, drawn: Collection[Digest]) -> list[VisitRequest]:
    """A sampling visit as two, if the profile tests the distribution of some workloads only: ``drawn``, the rest."""
    limit = SPENDS[profile, request.stage].drawn_limit
    rules = request.definition.policy.outputs.values()
    if limit is None or all(rule.kind != "samples" for rule in rules):
        return [request]
    tested = tuple(item for item in request.workloads if item.digest in drawn)
    others = tuple(item for item in request.workloads if item.digest not in drawn)
    parts = [(tested, request.sampling_draws), (others, 0)]
    return [
        request.model_copy(update={"workloads": part, "sampling_draws": draws}) for part, draws in parts if part
    ]


def drawn_workloads(placed: Sequence[Placed], profile: Profile, stage: Stage) -> frozenset[Digest]:
    """The heaviest workload of each traffic side in turn, as many as the profile allows."""
    limit = SPENDS[profile, stage].drawn_limit
    heaviest = sorted(placed, key=lambda item: (-item.weight, item.workload.digest))
    sides = [[item for item in heaviest if item.split == side] for side in ("train", "holdout", "stress")]
    turns = [item.workload.digest for turn in zip_longest(*sides) for item in turn if item is not None]
    return frozenset(turns if limit is None else turns[:limit])

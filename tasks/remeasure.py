"""Rounds of promoted keys once more: all planned rounds, no looks, under a campaign number that no run decides by.

In: what a channel promises. Out: each key measured again, stored. A killed remeasurement goes on under its number.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import confirm as room
from fib_core import ledger
from fib_core.decision.agreement import again, shares, spoiled
from fib_core.decision.contest import VisitSettings
from fib_core.decision.gates import causes
from fib_core.decision.paired import Entry, Rounds
from fib_core.decision.profiles import RULES
from schemas.base import Digest
from schemas.evaluation import Evaluation
from schemas.index import DispatchIndex
from schemas.remeasurement import KeyAgain, Remeasurement
from tasks.artifacts import show_table
from tasks.profile import INCUMBENT_FACTOR, visit_settings
from tasks.published import Promised, Solutions, as_published
from tasks.visits import settle
from tasks.wiring import House

REMEASURED = "remeasured"
FIRST_CAMPAIGN = 1_000_000
"""Numbers from here on are remeasurements: no decision rests on them."""


def next_campaign(house: House) -> int:
    """A number of its own for each finished remeasurement of this store."""
    return FIRST_CAMPAIGN + sum(1 for _ in house.store.keys(f"{REMEASURED}/"))


@task(task_run_name="remeasure {promised.contest.definition.name}", cache_policy=NO_CACHE)
def measure(house: House, promised: Promised, solutions: Solutions, blob_root: str | None) -> list[KeyAgain]:
    """Fresh rounds of one definition's promoted keys; as many as decided them."""
    logger, settings = get_run_logger(), _settings(house, promised, blob_root)
    evaluations: dict[Digest, Evaluation] = {}
    for number in range(1, promised.rounds + 1):
        for request in room.round_requests(promised.contest, number, settings, secrets.token_hex(16)):
            evaluations |= {item.digest: item for item in settle(house, request).evaluations}
        logger.info("round %d of %d", number, promised.rounds)
    return compared(house, promised, solutions, Rounds.of(promised.contest, evaluations))


def compared(house: House, promised: Promised, solutions: Solutions, rounds: Rounds) -> list[KeyAgain]:
    """Published and new, key by key; an unfit machine compares nothing."""
    faults = causes(rounds.watched, promised.rounds, RULES[house.settings.profile].drift_max)
    found = []
    for decision in promised.decisions:
        published, items = as_published(decision, solutions), promised.items_of(decision.key)
        entry = Entry("candidate", published.solution_digest)
        base = rounds.baseline(entry, items)
        evidence = rounds.evidence([entry, *([base] if base else [])], items)
        fresh = again(published, rounds.log_ratios(entry, items), evidence)
        found.append(spoiled(published, faults) if faults else fresh)
    return found


@task(task_run_name="compare with {house.settings.channel}", cache_policy=NO_CACHE)
def keep(house: House, index: DispatchIndex, keys: Sequence[KeyAgain], campaign: int) -> dict[str, Any]:
    """Store the remeasurement and say how far it agrees; the index stays as it is."""
    record = Remeasurement(
        index_digest=index.digest, channel=house.settings.channel, campaign=campaign, profile=index.profile,
        device_class=house.environment.device_class, measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        entries=tuple(keys),
    )  # fmt: skip
    digest = ledger.save(house.store, REMEASURED, record)
    rows = [item.model_dump(mode="json", exclude={"evaluations"}) for item in keys]
    show_table("remeasured", rows, f"Published and measured again, index {index.digest}.")
    counts = shares(keys)
    get_run_logger().info("%d of %d compared keys agree", counts["agreeing"], counts["compared"])
    head = {
        "index_digest": index.digest, "channel": record.channel, "profile": record.profile, "campaign": campaign,
        "remeasurement_digest": digest, "device_class": record.device_class,
    }  # fmt: skip
    return head | counts | {"keys": rows}


def _settings(house: House, promised: Promised, blob_root: str | None) -> VisitSettings:
    timed = [item.workload for item in promised.contest.timed]
    settings = visit_settings(house.settings, "confirm", promised.contest.definition, timed, blob_root)
    calls = settings.sample_count + settings.warmup_count
    spent_us = calls * sum(item.control_us or 0.0 for item in promised.decisions)
    limit_s = max(house.settings.visit_limit_s, INCUMBENT_FACTOR * spent_us / 1e6)
    return replace(settings, limits=settings.limits.model_copy(update={"visit_s": limit_s}))

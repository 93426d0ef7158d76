"""Finished campaigns in the store: which decisions a contest has under a campaign number.

In: a contest, a number. Out: its decisions, or None while the campaign is unfinished. A finished campaign is not
decided again: later knowledge (other campaigns' spread) would change what was decided, and an index may cite it.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace

from pydantic import ValidationError

from fib_core import ledger
from fib_core.decision.contest import Contest, VisitSettings
from fib_core.decision.profiles import RULES
from fib_core.errors import ObjectMissing, StoreRefused
from fib_core.index.staleness import POLICY_VERSION
from fib_core.jobs import driver_of
from fib_core.workloads.axisclass import class_key
from schemas.base import Digest
from schemas.campaign import Campaign
from schemas.canonical import digest_of
from schemas.decision import Decision
from tasks.wiring import House


def contest_digest(house: House, contest: Contest, settings: VisitSettings) -> Digest:
    """Equal contests ask the same question of the same device: equal numbers then mean equal rounds."""
    driver = driver_of(house.environment)
    return digest_of(
        ({"driver": driver} if driver else {})  # a CPU has none: its notes keep their names
        | {
            "snapshot": contest.snapshot_digest,
            "definition": contest.definition.digest,
            "timed": sorted(item.workload.digest for item in contest.timed),
            "incumbent": contest.incumbent.solution_digest if contest.incumbent else None,
            "forms": sorted(item.solution_digest for item in contest.forms),
            "finalists": sorted(item.solution_digest for item in contest.finalists),
            "rules": asdict(RULES[house.settings.profile]),
            "policy_version": POLICY_VERSION,
            "device_class": house.environment.device_class,
            "libraries": house.environment.libraries,
            "calls": [settings.warmup_count, settings.sample_count, settings.input_sets, settings.mode],
        }
    )


def decided(house: House, contest: Digest, number: int) -> list[Decision] | None:
    """Decisions of a finished campaign, None if there are none (yet, or any more); raises StoreRefused on damage."""
    key = _key(contest, number)
    try:
        note = Campaign.model_validate_json(house.store.get(key).body)
        return [ledger.load(house.store, "decisions", digest, Decision) for digest in note.decisions]
    except ObjectMissing:
        return None
    except ValidationError as error:
        raise StoreRefused(f"{key} in {house.store.url} is damaged; delete it and run again") from error


def finish(house: House, contest: Digest, number: int, decisions: Sequence[Decision]) -> None:
    """Note a campaign as finished; whoever was first stays. Decisions are durable before the note that names them."""
    digests = tuple(ledger.save(house.store, "decisions", item) for item in decisions)
    note = Campaign(contest=contest, number=number, decisions=digests)
    house.store.put_once(_key(contest, number), ledger.body_of(note))


def narrowed(contest: Contest, settled: Collection[str]) -> Contest:
    """The same contest, timed only at keys that are not settled; gates stay, since every promotion needs them."""
    if not settled:
        return contest
    timed = tuple(
        item for item in contest.timed if item.split != "train" or class_key(item.workload.axes) not in settled
    )
    return replace(contest, timed=timed)


def worth_rounds(contest: Contest) -> bool:
    """True unless the screen blocked it or no train workload is left to be timed."""
    return contest.blocked is None and any(item.split == "train" for item in contest.timed)


def _key(contest: Digest, number: int) -> str:
    return f"campaigns/{contest.removeprefix('sha256:')}/{number}.json"

"""Which earlier decisions still stand, so that a run confirms only what is new or stale.

In: a contest after its screen. Out: decisions of the channel's current index that answer exactly its questions. The
index carries all that is needed to tell: the digest of what was asked, and where, when and how it was measured.
"""

from collections.abc import Iterator
from typing import NamedTuple

from prefect import get_run_logger

from fib_core import ledger
from fib_core.decision.contest import Contest
from fib_core.decision.paired import Rounds
from fib_core.decision.profiles import RULES
from fib_core.decision.verdict import KeyCase
from fib_core.errors import ObjectMissing
from fib_core.index.evidence import Question, rules_digest
from fib_core.index.lookup import definition_in
from fib_core.index.staleness import POLICY_VERSION, Present, identity_reasons, key_reasons
from fib_core.jobs import timer_of
from fib_core.publication import history
from fib_core.publish import read_index
from schemas.base import Digest
from schemas.decision import Decision, KeyBox
from schemas.index import DispatchIndex, IndexedDefinition, KeyEvidence
from tasks.profile import visit_settings
from tasks.wiring import House


class _Decided(NamedTuple):
    evidence: KeyEvidence
    solution_digest: Digest | None


def standing_decisions(house: House, contest: Contest) -> dict[str, Decision]:
    """Key -> decision of the channel's current index that still answers exactly this contest.

    It stands if the same finalists met the same incumbents on the same workloads, under the same profile and rule, with
    the same timer, and nothing made it stale: no other major of a library or the driver. A minor update is no reason to
    measure again, although it changes every Job. What ended without a verdict never stands; nor does an earlier
    campaign than the one that is asked for.
    """
    index = _current_index(house)
    block = definition_in(index, contest.definition.digest) if index is not None else None
    if index is None or block is None or contest.blocked or index.device_class != house.environment.device_class:
        return {}
    known = {item.evidence.key: item for item in _decided(block)}
    found: dict[str, Decision] = {}
    for key in contest.keys.keys() & known.keys():
        why = _why_not(house, contest, known[key])
        decision = _load(house, known[key].evidence) if not why else None
        if decision is not None:
            found[key] = decision
        elif why:
            get_run_logger().info("[%s] is confirmed again: %s", key, why)
    return dict(sorted(found.items()))


def _current_index(house: House) -> DispatchIndex | None:
    pointer = history.look(house.store, house.settings.channel).pointer
    if pointer is None:
        return None
    try:
        return read_index(house.store, pointer.index_digest)
    except ObjectMissing as error:
        get_run_logger().warning("nothing stands: the channel's index is no longer in the store (%s)", error)
        return None


def _decided(block: IndexedDefinition) -> Iterator[_Decided]:
    """Every key that has a verdict: promoted, or kept after enough rounds on a fit machine."""
    for entry in block.entries:
        yield from (_Decided(item, entry.solution_digest) for item in entry.evidence)
    for kept in block.kept:
        if kept.verdict == "kept_incumbent" and kept.evidence is not None:
            yield _Decided(kept.evidence, None)


def _why_not(house: House, contest: Contest, known: _Decided) -> str:
    """Why an earlier decision does not stand; empty if it does."""
    evidence, present = known.evidence, _present(house, contest)
    stale = (
        *identity_reasons(contest.definition.digest, known.solution_digest, present), *key_reasons(evidence, present)
    )  # fmt: skip
    reasons = [reason.detail for reason in stale]
    mode = visit_settings(house.settings, "confirm", contest.definition, [], None).mode
    if (evidence.policy.timer, evidence.policy.mode) != (timer_of(house.environment), mode):
        reasons.append(f"measured with {evidence.policy.timer} in mode {evidence.policy.mode}")
    if evidence.contest_digest != _question(house, contest, evidence.key).digest:
        reasons.append("finalists, incumbents or workloads are not the same")
    if evidence.campaign < house.settings.numbers[0]:
        reasons.append(f"it is of campaign {evidence.campaign}")
    return "; ".join(reasons)


def _present(house: House, contest: Contest) -> Present:
    return Present(
        libraries=house.environment.libraries,
        driver=house.environment.driver,
        policy_version=POLICY_VERSION,
        rules=rules_digest(house.settings.profile),
        solutions={item.solution_digest for item in contest.finalists},
    )


def _question(house: House, contest: Contest, key: str) -> Question:
    """What the rounds of this contest would ask at ``key``."""
    assert contest.incumbent is not None
    definition, device_class = contest.definition.digest, house.environment.device_class
    box = KeyBox(definition_digest=definition, device_class=device_class, layout="contiguous", axes={})
    case = KeyCase(contest, key, box, Rounds.of(contest, {}), RULES[house.settings.profile])
    return Question(
        definition, key, device_class, house.settings.profile, contest.incumbent.solution_digest,
        tuple(item.solution_digest for item in contest.forms),
        tuple(item.solution_digest for item in case.finalists),
        tuple(item.workload.digest for item in (*case.train, *case.gates)),
    )  # fmt: skip


def _load(house: House, evidence: KeyEvidence) -> Decision | None:
    try:
        return ledger.load(house.store, "decisions", evidence.decision_digest, Decision)
    except ObjectMissing:
        get_run_logger().warning("[%s] is confirmed again: its decision is no longer in the store", evidence.key)
        return None

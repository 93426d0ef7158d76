"""Room 5, confirm: finalists, incumbent and control in; paired fresh-process rounds; one Decision per key out.

Pure: it asks for rounds (VisitRequests) and judges the Evaluations that come back; screen times enter no estimate. The
rule is the one of the contract: significance, minimum effect, gates passed, gates not slower; else the incumbent. A
machine that was not fit to judge, or a control that won, makes a decision INVALID.
"""

import random
from collections.abc import Mapping, Sequence
from functools import cache

from fib_core.decision.contest import Contest, VisitSettings, applies
from fib_core.decision.decided import resolve
from fib_core.decision.gates import causes
from fib_core.decision.paired import Rounds
from fib_core.decision.profiles import Rules
from fib_core.decision.verdict import KeyCase, judge
from schemas.base import Digest
from schemas.canonical import digest_of
from schemas.decision import Decision, KeyBox
from schemas.evaluation import Evaluation
from schemas.snapshot import Placed
from schemas.visit import Contestant, VisitRequest
from schemas.workload import Workload

LAYOUT = "contiguous"


def round_requests(contest: Contest, round_number: int, settings: VisitSettings, seed: str) -> list[VisitRequest]:
    """One round as visits: one, unless finalists differ in their declared support.

    Workloads are grouped by the finalists that support them, so that nobody is run outside its support; incumbents and
    control come along in every group. All meet the same secret inputs (``seed``).
    """
    groups: dict[tuple[Contestant, ...], list[Workload]] = {}
    for item in contest.timed:
        able = tuple(one for one in contest.finalists if applies(one, contest.definition, item.workload))
        groups.setdefault(able, []).append(item.workload)
    return [
        _request(contest, able, workloads, (round_number, seed), settings)
        for able, workloads in groups.items()
        if able or len(groups) == 1
    ]


def _request(
    contest: Contest,
    finalists: Sequence[Contestant],
    workloads: Sequence[Workload],
    draw: tuple[int, str],
    settings: VisitSettings,
) -> VisitRequest:
    """Contestants, then workloads, in an order drawn from the round and its seed; one order for all contestants."""
    assert contest.incumbent is not None
    round_number, seed = draw
    incumbent = contest.incumbent.model_copy(update={"role": "incumbent"})
    order = [*finalists, *contest.forms, incumbent, incumbent.model_copy(update={"role": "control"})]
    workloads = list(workloads)
    shuffle = random.Random(digest_of([seed, round_number, contest.definition.digest]))
    shuffle.shuffle(order)
    shuffle.shuffle(workloads)
    return VisitRequest(
        definition=contest.definition, workloads=tuple(workloads), contestants=tuple(order), stage="confirm",
        round=round_number, seed=seed, warmup_count=settings.warmup_count, sample_count=settings.sample_count,
        input_sets=settings.input_sets, sampling_draws=settings.sampling_draws, limits=settings.limits,
        mode=settings.mode, blob_root=settings.blob_root, campaign=contest.campaign,
    )  # fmt: skip


def decide(
    contest: Contest,
    evaluations: Mapping[Digest, Evaluation],
    rules: Rules,
    device_class: str,
    earlier: Sequence[Decision] = (),
) -> list[Decision]:
    """One Decision per key of the train side, timed or not: what is published always adds up to what was seen.

    ``evaluations`` maps digest -> confirm-stage Evaluation of this definition; other stages and other campaigns than
    ``contest.campaign`` are ignored.
    """
    # ``earlier``: decisions of any definition and campaign, in any order; hand in all that the store has for this
    # device. Those of this worker, timer, profile and kernel length lend their controls to the minimum effect (see
    # ``spread``), this contest's own are left out, all others are ignored. Without any, the key's control stands alone.
    rounds = Rounds.of(contest, evaluations)
    machine = cache(lambda count: causes(rounds.watched, count, rules.drift_max))
    cases = [
        KeyCase(contest, key, _box(contest, items, device_class), rounds, rules, machine, earlier)
        for key, items in contest.keys.items()
    ]
    return resolve([judge(case) for case in cases])


def needs_more_rounds(decisions: Sequence[Decision]) -> bool:
    """True if another look may still change a verdict."""
    return any(item.verdict == "not_enough_rounds" for item in decisions)


def _box(contest: Contest, items: Sequence[Placed], device_class: str) -> KeyBox:
    """Hull of the key's train points, on all of which every finalist passed the screen: outside it nothing is claimed.

    Points of two keys differ in the class of some axis, so the boxes of a definition never overlap.
    """
    points = [item.workload.axes for item in items]
    return KeyBox(
        definition_digest=contest.definition.digest,
        device_class=device_class,
        layout=LAYOUT,
        axes={name: (min(p[name] for p in points), max(p[name] for p in points)) for name in sorted(points[0])},
    )

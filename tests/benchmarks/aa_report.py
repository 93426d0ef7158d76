"""Counts what campaigns on known programs decided: false promotions, power, shares, spread by kernel length.

In: a store with decisions about definitions named ``aa_*``, ``slow2_*``, ``slow5_*``. Out: one JSON-able report whose
counts add up. Reads the store only; decides nothing anew, except whether a control met significance and effect.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from scipy.stats import binomtest

from fib_core import ledger
from fib_core.decision.profiles import RULES
from fib_core.decision.spread import length_class
from fib_core.decision.stats import hodges_lehmann, signed_rank_p
from fib_core.errors import ObjectMissing
from fib_core.ports import ObjectStore
from schemas.decision import Decision
from schemas.evaluation import Evaluation
from tasks.memory import DecisionMemory

VARIANTS = {"aa": 0.0, "slow2": 0.02, "slow5": 0.05}
Row = dict[str, Any]


def decisions_of(store: ObjectStore) -> list[Decision]:
    """One decision per (snapshot, definition, key, campaign): a decided one stands above one that lacked rounds."""
    chosen: dict[tuple[str, str, str, int], Decision] = {}
    for item in DecisionMemory().all_of(store):
        place = (item.snapshot_digest, item.definition_digest, item.key, item.campaign)
        if variant_of(item) and (place not in chosen or chosen[place].verdict == "not_enough_rounds"):
            chosen[place] = item
    return sorted(chosen.values(), key=lambda item: (item.definition, item.campaign, item.key))


def variant_of(decision: Decision) -> str | None:
    """``aa``, ``slow2`` or ``slow5``; None for a definition that is none of ours."""
    name = decision.definition.split("_", maxsplit=1)[0]
    return name if name in VARIANTS else None


def control_wins(decision: Decision) -> bool:
    """True if the control was significantly faster than itself by the minimum effect, at any planned look so far.

    Gates are not asked: this counts at least as many as the rule does.
    """
    if decision.control is None or decision.causes:
        return False
    logs, count = decision.control.log_ratios, max(1, len(decision.finalists))
    looks = [look for look in RULES[decision.profile].looks if look.rounds <= len(logs)]
    return any(
        signed_rank_p(logs[: look.rounds]) * count < look.alpha
        and math.exp(hodges_lehmann(logs[: look.rounds])) >= 1 + decision.min_effect
        for look in looks
    )


def share(count: int, total: int) -> Row:
    """count / total with the exact 95 % interval of Clopper and Pearson (1934); ``upper_95`` is the one-sided bound."""
    if not total:
        return {"count": count, "of": total, "share": None, "interval_95": None, "upper_95": None}
    low, high = binomtest(count, total).proportion_ci(0.95, method="exact")
    upper = binomtest(count, total, alternative="less").proportion_ci(0.95, method="exact").high
    return {"count": count, "of": total, "share": count / total, "interval_95": [low, high], "upper_95": upper}


def report(decisions: Sequence[Decision]) -> Row:
    """Everything that is counted. ``verdicts`` adds up to ``decisions``, per variant and in total."""
    controls = [item for item in decisions if item.control is not None and not item.causes]
    return {
        "decisions": len(decisions),
        "contests": len({(item.definition, item.campaign) for item in decisions}),
        "campaigns": sorted({item.campaign for item in decisions}),
        "profiles": sorted({item.profile for item in decisions}),
        "verdicts": _verdicts(decisions),
        "invalid_causes": dict(Counter(cause.split(":")[0] for item in decisions for cause in item.causes)),
        "control": {
            "keys": share(sum(control_wins(item) for item in controls), len(controls)),
            # Keys of one contest share processes, so contests are the cautious count.
            "contests": share(len(_places(filter(control_wins, controls))), len(_places(controls))),
            "invalid_by_control": sum(item.verdict == "invalid" and not item.causes for item in decisions),
        },
        "aa_candidate": _promoted([item for item in decisions if variant_of(item) == "aa"]),
        "power": {name: _power(decisions, name) for name in VARIANTS if name != "aa"},
        "spread": spread_rows(controls),
    }


def merged(runs: Sequence[Row]) -> Row:
    """Reports of several homes (machines, or kernels that changed): decisions added up, power left to each run.

    What a program was really slowed by is a matter of its kernels, so shares found are no sum.
    """
    equal = _added([run["aa_candidate"] for run in runs])
    control = {unit: _added([run["control"][unit] for run in runs]) for unit in ("keys", "contests")}
    verdicts = sum((Counter(run["verdicts"]["total"]) for run in runs), Counter())
    totals = {"decisions": sum(run["decisions"] for run in runs), "contests": sum(run["contests"] for run in runs)}
    return totals | {"verdicts": dict(verdicts), "control": control, "aa_candidate": equal, "runs": list(runs)}


def _added(rows: Sequence[Row]) -> Row:
    return share(sum(row["count"] for row in rows), sum(row["of"] for row in rows))


def _verdicts(decisions: Sequence[Decision]) -> Row:
    total = Counter(item.verdict for item in decisions)
    each = {name: Counter(item.verdict for item in decisions if variant_of(item) == name) for name in VARIANTS}
    return {"total": dict(total)} | {name: dict(counts) for name, counts in each.items()}


def _places(decisions: Iterable[Decision]) -> set[tuple[str, int]]:
    return {(item.definition, item.campaign) for item in decisions}


def _promoted(decisions: Sequence[Decision]) -> Row:
    """Promotions among what was decided for or against a candidate: INVALID and unfinished ones judge nobody."""
    judged = [item for item in decisions if item.verdict in ("promoted", "kept_incumbent")]
    return share(sum(item.verdict == "promoted" for item in judged), len(judged))


def _power(decisions: Sequence[Decision], variant: str) -> Row:
    mine = [item for item in decisions if variant_of(item) == variant and item.control_us]
    lengths = sorted({length_class(item.control_us or 1) for item in mine}, key=_start_of)
    kept = [item for item in mine if item.verdict == "kept_incumbent"]
    return {
        "total": _promoted(mine),
        "by_length": {
            name: _promoted([item for item in mine if length_class(item.control_us or 1) == name])
            | {"gain": _gain([item for item in mine if length_class(item.control_us or 1) == name])}
            for name in lengths
        },
        "failed_conditions": dict(Counter(name for item in kept for name in item.failed)),
        "gain": _gain(mine),
    }


def _gain(decisions: Sequence[Decision]) -> Row | None:
    """Mean of all decisions' estimates, promoted or not: what the rounds say the injected gain is."""
    logs = [math.log(each.ratio) for item in decisions if not item.causes for each in item.estimates]
    if len(logs) < 2:
        return None
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return {"mean": math.exp(statistics.fmean(logs)) - 1, "standard_error": error, "estimates": len(logs)}


def spread_rows(controls: Sequence[Decision]) -> list[Row]:
    """A/A by kernel length: scatter of a decision's estimate and of one round, their mean, minimum effects."""
    groups: defaultdict[str, list[Decision]] = defaultdict(list)
    for item in controls:
        if item.control_us:
            groups[length_class(item.control_us)].append(item)
    return [_spread_row(name, groups[name]) for name in sorted(groups, key=_start_of)]


def _spread_row(name: str, items: Sequence[Decision]) -> Row:
    rows = [item.control for item in items if item.control]
    logs = [math.log(each.ratio) for each in rows]
    rounds = [statistics.stdev(each.log_ratios) for each in rows if len(each.log_ratios) > 1]
    return {
        "length": name, "decisions": len(items), "mean_log_ratio": statistics.fmean(logs),
        "sd_of_estimates": statistics.stdev(logs) if len(logs) > 1 else None,
        "median_sd_of_a_round": statistics.median(rounds) if rounds else None,
        "median_min_effect": statistics.median(item.min_effect for item in items),
    }  # fmt: skip


def _start_of(length: str) -> float:
    return float(length.split("-", maxsplit=1)[0])


def environment_of(store: ObjectStore, decisions: Sequence[Decision]) -> Row | None:
    """Where the newest of the listed evaluations was measured."""
    for item in reversed(decisions):
        for digest in item.evaluations[:1]:
            try:
                found = ledger.load(store, ledger.EVALUATIONS, digest, Evaluation)
            except ObjectMissing:
                continue
            return found.environment.model_dump(mode="json") | {"timer": found.job.timer, "effort": found.job.effort}
    return None

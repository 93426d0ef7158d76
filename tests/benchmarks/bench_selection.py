"""The decision rule over synthetic timing: how often it promotes by luck, and how often it finds what is faster.

Writes ``build/bench/selection.json``. The REAL rooms decide (screen ranking, finalists, rounds, looks, gates, decision,
with the figures of the profile ``full``, on one train and one holdout workload: more would average the noise away);
only the device is made up (``selection_world``). Rows of ``--campaigns``
campaigns: ten identical candidates, one that is 2 % faster, and others; each row shows beside the rule what the usual
rule makes of the same screen: the smallest number ever seen, one run each. Bounds are exact (Clopper-Pearson, one
side, 95 %). Rows marked as controls show that the benchmark can fail: rounds of one process instead of fresh ones, a
control that is not the incumbent, a machine that throttles. Run: ``python tests/benchmarks/bench_selection.py``.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from fib_core import confirm, screen  # noqa: E402
from fib_core.decision.contest import screen_times  # noqa: E402
from fib_core.decision.profiles import FULL  # noqa: E402
from fib_core.decision.ranking import best_ratio  # noqa: E402
from schemas.decision import Decision  # noqa: E402
from schemas.evaluation import Evaluation  # noqa: E402
from tasks.profile import SPENDS  # noqa: E402
from tests.benchmarks.selection_table import lower, show, upper  # noqa: E402
from tests.benchmarks.selection_world import DEVICE, Device, Noise, Stage, settings, stage  # noqa: E402

SEED = 20_240_611
CAMPAIGNS = 2_000
CONTROL_SHARE = 10
"""Rows that only show that the benchmark can fail get a tenth of the campaigns."""
HISTORY = 20
"""Earlier decisions of the worker whose controls a campaign may use, in rows with history."""
RULES = replace(FULL, timed_limit=2)
SCREEN_SAMPLES, ROUND_SAMPLES = SPENDS["full", "screen"].sample_count, SPENDS["full", "confirm"].sample_count


HONEST = Noise()


@dataclass(frozen=True)
class Row:
    """One world. ``gains``: candidate -> true gain; all others are the incumbent's equals."""

    name: str
    candidates: int = 10
    gains: dict[str, float] = field(default_factory=dict)
    noise: Noise = HONEST
    history: int = 0
    control: bool = False


NULL, POWER = "ten identical", "one +2 %"
ROWS = (
    Row(NULL),
    Row(POWER, gains={"c0": 0.02}),
    Row("ten identical, history", history=HISTORY),
    Row("one +2 %, history", gains={"c0": 0.02}, history=HISTORY),
    Row("control: rounds in one process", noise=Noise(one_process=True), control=True),
    Row("control: false incumbent +3 %", noise=Noise(control_gain=0.03), control=True),
    Row("control: throttles by 12 %", gains={"c0": 0.02}, noise=Noise(ramp=0.12), control=True),
    Row("ten identical, noise x 6", noise=Noise(process=0.05), history=HISTORY),
    Row("one +3 %", gains={"c0": 0.03}),
    Row("+2 % and +3 %", gains={"c0": 0.02, "c1": 0.03}),
    Row("thirty identical", candidates=30),
)


@dataclass(frozen=True)
class Outcome:
    """One campaign: what the rule decided, and what the smallest number of the screen would have."""

    decision: Decision
    argmax: str | None
    argmax_ratio: float
    names: dict[str, str]


def main() -> None:
    """Run every row, print and store it."""
    parser = argparse.ArgumentParser(description="The decision rule over synthetic timing.")
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS, help=f"campaigns of a row (default {CAMPAIGNS})")
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    parser.add_argument("--json", action="store_true", help="print the report instead of the table")
    given = parser.parse_args()
    started = time.monotonic()
    rows = {}
    for number, row in enumerate(ROWS):
        if given.rows in row.name:
            campaigns = max(1, given.campaigns // CONTROL_SHARE) if row.control else given.campaigns
            rows[row.name] = measured(row, campaigns, number)
            if not given.json:
                show(row.name, rows[row.name])
    report = headline(rows) | {
        "campaigns": given.campaigns, "seed": SEED, "profile": "full", "rows": rows,
        "wall_s": round(time.monotonic() - started, 1),
    }  # fmt: skip
    out = ROOT / "build" / "bench" / "selection.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report) if given.json else f"{report['wall_s']} s; {out}")


def headline(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The figures that are judged: the null row's promotions, the +2 % row's power, bias and coverage."""
    null, power = rows.get(NULL, {}), rows.get(POWER, {})
    return {
        "false_promotion": null.get("false_promotion"),
        "false_promotion_upper_95": null.get("false_promotion_upper_95"),
        "argmax_false_promotion": null.get("argmax_false_promotion"),
        "power_2pct": power.get("found"),
        "power_2pct_lower_95": power.get("found_lower_95"),
        "bias_points": power.get("bias_points"),
        "coverage": power.get("coverage"),
    }


def measured(row: Row, campaigns: int, number: int) -> dict[str, Any]:
    """Counts and rates of one row."""
    world = stage(row.candidates, SCREEN_SAMPLES)
    outcomes = list(played(row, world, campaigns, number))
    counts = Counter(verdict_of(item, row) for item in outcomes)
    wrong = counts["promoted_wrong"] + counts["control_won"]
    best = max(row.gains.values(), default=0.0)
    found = counts["promoted_best"]
    argmax_wrong = sum(item.argmax is not None and row.gains.get(item.argmax, 0.0) <= 0 for item in outcomes)
    summary: dict[str, Any] = {
        "campaigns": campaigns,
        "counts": {name: counts[name] for name in KINDS},
        "false_promotion": wrong / campaigns,
        "false_promotion_upper_95": upper(wrong, campaigns),
        "argmax_false_promotion": argmax_wrong / campaigns,
        "is_control": row.control,
    }
    if best > 0:
        hits = sum(row.gains.get(item.argmax or "", 0.0) == best for item in outcomes)
        summary |= {
            "found": found / campaigns, "found_lower_95": lower(found, campaigns), "argmax_found": hits / campaigns,
        }  # fmt: skip
    return summary | published(outcomes, row)


def played(row: Row, world: Stage, campaigns: int, number: int) -> Iterator[Outcome]:
    """Campaign after campaign; earlier decisions are kept as far as the row's history allows."""
    earlier: list[Decision] = []
    jobs: dict[tuple[object, ...], Any] = {}
    for campaign in range(campaigns):
        device = Device(row.noise, row.gains, np.random.default_rng([SEED, number, campaign]), jobs)
        outcome = play(world, device, earlier, campaign if row.history else 0)
        earlier = [*earlier, outcome.decision][-row.history :] if row.history else []
        yield outcome


def play(world: Stage, device: Device, earlier: list[Decision], campaign: int) -> Outcome:
    """One campaign through the real rooms, as the pipeline walks them."""
    screened = device.visit(world.screening).values()
    contest = screen.finalists(world.snapshot, world.definition, world.entrants, screened, RULES)
    contest = replace(contest, campaign=campaign)
    evaluations: dict[str, Evaluation] = {}
    decisions = confirm.decide(contest, evaluations, RULES, DEVICE, earlier)
    done = 0
    for look in RULES.looks if contest.blocked is None else ():
        for number in range(done + 1, look.rounds + 1):
            for request in confirm.round_requests(contest, number, settings(ROUND_SAMPLES), f"seed {number}"):
                evaluations |= device.visit(request)
        done = look.rounds
        decisions = confirm.decide(contest, evaluations, RULES, DEVICE, earlier)
        if not confirm.needs_more_rounds(decisions):
            break
    (decision,) = decisions
    times = screen_times(screened)
    rivals = {item.solution_digest: item.solution.name for item in world.entrants if item.role == "candidate"}
    ratios = {digest: best_ratio(contest, digest, times) for digest in rivals}
    best = max(ratios, key=lambda digest: ratios[digest])
    return Outcome(decision, rivals[best] if ratios[best] > 1 else None, ratios[best], rivals)


KINDS = (
    "promoted_best", "promoted_other_winner", "promoted_wrong", "control_won", "machine_invalid", "not_enough_rounds",
    "kept_incumbent",
)  # fmt: skip


def verdict_of(outcome: Outcome, row: Row) -> str:
    """One of ``KINDS``."""
    decision = outcome.decision
    if decision.verdict == "invalid":
        return "machine_invalid" if decision.causes else "control_won"
    if decision.verdict != "promoted":
        return decision.verdict
    gain = row.gains.get(outcome.names[decision.solution_digest or ""], 0.0)
    if gain <= 0:
        return "promoted_wrong"
    return "promoted_best" if gain == max(row.gains.values()) else "promoted_other_winner"


def published(outcomes: list[Outcome], row: Row) -> dict[str, Any]:
    """What consumers would read: bias of the ratio in percentage points, and how often the interval holds the truth."""
    errors, inside, screened, rounds = [], 0, [], Counter[int]()
    for item in outcomes:
        if item.decision.verdict != "promoted":
            continue
        truth = 1 + row.gains.get(item.names[item.decision.solution_digest or ""], 0.0)
        estimate = next(one for one in item.decision.estimates if one.solution_digest == item.decision.solution_digest)
        errors.append(100 * (estimate.ratio - truth))
        inside += estimate.interval[0] <= truth <= estimate.interval[1]
        rounds[item.decision.rounds] += 1
    for item in outcomes:
        if item.argmax is not None:
            screened.append(100 * (item.argmax_ratio - 1 - row.gains.get(item.argmax, 0.0)))
    mean: Callable[[list[float]], float | None] = lambda values: float(np.mean(values)) if values else None  # noqa: E731
    return {
        "published": len(errors), "bias_points": mean(errors), "argmax_bias_points": mean(screened),
        "coverage": inside / len(errors) if errors else None, "rounds": dict(sorted(rounds.items())),
        "mean_min_effect": float(np.mean([item.decision.min_effect for item in outcomes])),
    }  # fmt: skip


if __name__ == "__main__":
    main()

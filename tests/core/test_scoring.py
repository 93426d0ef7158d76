"""Scores of records: every aggregate carries its names, sides never mix, what was spoiled is kept out and counted."""

# long file: one scenario, every promise about its names and sides
import math
from dataclasses import replace
from statistics import median

import pytest

from fib_core import dispatch
from fib_core.account.projections import Overhead, bounds_of, projections, roofline_rows
from fib_core.account.scorecard import Evidence, Scorecard, measured, scorecard
from fib_core.account.scoring import CONFIRMED, EVERY, SCREEN_TIMES, pooled, speed_scores
from fib_core.account.traffic import Measured
from fib_core.account.trials import key_populations, published, screen_populations
from fib_core.errors import ContractError
from schemas.decision import Decision
from schemas.evaluation import Evaluation, Status
from schemas.snapshot import Snapshot
from schemas.workload import Workload
from tests.core.road import walk
from tests.core.world import DEVICE, World, gemm, solution


def verdict(name: str, workload: Workload) -> Status:
    return Status.INCORRECT_NUMERICAL if name == "wrong" else Status.PASSED


GEMM = gemm()
WALKED = walk(
    World({"old": 1.0, "fast": 0.5, "wrong": 0.1}, verdict=verdict), [solution(n, GEMM) for n in ("fast", "wrong")]
)
OLD = WALKED.decisions[0].incumbent_digest or ""
INDEX = dispatch.build(WALKED.snapshot, WALKED.decisions, WALKED.solutions, "quick", DEVICE, {}, WALKED.measured)
SIDES = {item.workload.digest: item.split for item in WALKED.snapshot.workloads}


def card(
    screened: list[Evaluation] | None = None, decisions: list[Decision] | None = None, **more: object
) -> Scorecard:
    screened = WALKED.screened if screened is None else screened
    decided = WALKED.decisions if decisions is None else decisions
    given = Evidence(WALKED.snapshot, decided, INDEX, measured(screened, SCREEN_TIMES), screened=screened)
    return scorecard(replace(given, **more))  # type: ignore[arg-type]


def altered(side: str, **update: object) -> list[Evaluation]:
    """The screen with every evaluation of one side changed."""
    return [
        item.model_copy(update=update) if SIDES[item.job.workload_digest] == side else item for item in WALKED.screened
    ]


def on(found: Scorecard, side: str) -> list[object]:
    return [item for item in (*found.confirmed, *found.traffic, *found.screen) if item.side == side]


def test_every_aggregate_names_snapshot_weights_baseline_population_side_and_source() -> None:
    for row in card().rows:
        assert row["snapshot_digest"] == WALKED.snapshot.digest
        assert row["weights"] == (WALKED.snapshot.weights if row["population"] == "logged calls" else "none")
        assert row["baseline"] == [OLD]
        assert row["side"] in ("train", "holdout", "stress")
        assert row["times"]
        assert row["count"] > 0
        assert {"invalid", "untimed", "population", "definition", "parameter"} <= row.keys()


def test_scores_of_promotions_come_from_confirmed_estimates_and_not_from_the_screen() -> None:
    shares = {item.parameter: item.value for item in card().find("fast_p", 1.0, times=CONFIRMED)}
    promoted = sum(item.verdict == "promoted" for item in WALKED.decisions)
    assert shares == {1.0: promoted / len(WALKED.decisions)}
    (whole,) = [item for item in card().confirmed if item.name == "area"]
    assert whole.value == pytest.approx(
        math.fsum(min(published(d), 4.0) for d in WALKED.decisions) / len(WALKED.decisions)
    )
    slower = [item.model_copy(update={"samples_us": (1e6,)}) for item in WALKED.screened]
    assert card(slower).confirmed == card().confirmed  # the screen's times are no evidence here
    assert card(slower).screen != card().screen


def test_what_rests_on_screen_times_says_that_it_only_ranks() -> None:
    found = card()
    assert {item.times for item in found.screen} == {"screen times: ranking only"}
    assert all("ranking only" in item.times for item in found.traffic if item.name != "served_calls")
    assert {item.times for item in found.confirmed} == {"confirmed estimates"}


@pytest.mark.parametrize("side", ["stress", "holdout"])
def test_a_stress_or_holdout_workload_changes_no_number_of_the_train_side(side: str) -> None:
    worse = card(altered(side, samples_us=(1e9,), status=Status.PASSED))
    failing = card(altered(side, status=Status.TIMEOUT, samples_us=()))
    assert on(worse, "train") == on(failing, "train") == on(card(), "train")
    assert on(failing, side) != on(card(), side)  # and it does change its own


def test_stress_is_no_traffic_and_has_only_shares_of_its_own() -> None:
    names = {item.name for item in (*card().confirmed, *card().traffic, *card().screen) if item.side == "stress"}
    assert names == {"fast_p", "area"}


def test_the_screens_shares_are_those_of_the_candidates_on_that_side() -> None:
    for side in ("train", "holdout", "stress"):
        candidates = [
            item for item in WALKED.screened
            if item.job.role == "candidate" and SIDES[item.job.workload_digest] == side
        ]  # fmt: skip
        (correct,) = card().find("fast_p", 0.0, times=SCREEN_TIMES, side=side)
        assert correct.count == len(candidates)
        assert correct.value == sum(item.status is Status.PASSED for item in candidates) / len(candidates)


def test_a_spoiled_pair_is_kept_out_and_counted_whoever_of_the_two_was_spoiled() -> None:
    (before,) = card().find("fast_p", 1.0, times=SCREEN_TIMES, side="train")
    for culprit in ("fast", "old"):
        at = next(digest for digest, side in SIDES.items() if side == "train")
        digest = next(d for d, one in WALKED.solutions.items() if one.name == culprit)
        spoiled = [
            item.model_copy(update={"status": Status.INVALID, "samples_us": ()})
            if (item.job.solution_digest, item.job.workload_digest) == (digest, at)
            else item
            for item in WALKED.screened
        ]
        (after,) = card(spoiled).find("fast_p", 1.0, times=SCREEN_TIMES, side="train")
        lost = 1 if culprit == "fast" else 2  # without the incumbent's time nobody can be compared there
        assert (after.invalid, after.count) == (lost, before.count - lost)


def test_what_does_not_apply_counts_as_a_failure_on_its_side() -> None:
    outside = [("sha256:" + "a" * 64, digest) for digest, side in SIDES.items() if side == "train"]
    (before,) = card().find("fast_p", 1.0, times=SCREEN_TIMES, side="train")
    (after,) = card(not_applicable=outside).find("fast_p", 1.0, times=SCREEN_TIMES, side="train")
    assert after.value * after.count == pytest.approx(before.value * before.count)
    assert after.count == before.count + len(outside)
    assert card(not_applicable=outside).find("fast_p", 1.0, side="stress") == card().find("fast_p", 1.0, side="stress")


def test_who_cheated_anywhere_is_fast_nowhere() -> None:
    (first, *_), rest = [e for e in WALKED.screened if e.job.role == "candidate"], WALKED.screened
    caught = [item.model_copy(update={"status": Status.CHEATED}) if item is first else item for item in rest]
    honest = screen_populations(WALKED.snapshot, WALKED.screened, WALKED.decisions)
    barred = screen_populations(WALKED.snapshot, caught, WALKED.decisions)
    assert all(trial.ratio is None for one in barred for trial in one.trials)
    assert any(trial.ratio is not None for one in honest for trial in one.trials)


def test_declared_incumbents_are_no_candidates_of_the_screen() -> None:
    as_forms = [
        item.model_copy(update={"job": item.job.model_copy(update={"role": "incumbent"})}) for item in WALKED.screened
    ]
    assert screen_populations(WALKED.snapshot, as_forms, WALKED.decisions) == []


def test_a_spoiled_decision_is_no_key_of_the_score_and_is_counted() -> None:
    decisions = [WALKED.decisions[0].model_copy(update={"verdict": "invalid"}), *WALKED.decisions[1:]]
    (one,) = key_populations(WALKED.snapshot, decisions)
    assert (one.invalid, len(one.trials)) == (1, len(WALKED.decisions) - 1)


def test_the_weighted_speedup_is_the_logged_time_before_over_the_time_after() -> None:
    (found,) = card().find("weighted_speedup", side="train")
    times = measured(WALKED.screened, "").times
    entries = INDEX.definitions[0].entries
    before = after = 0.0
    for item in WALKED.snapshot.workloads:
        if item.split == "train":
            ratio = next((e.ratio for e in entries if e.box.covers(item.workload.axes)), None)
            cost = item.weight * times[OLD, item.workload.digest]
            before, after = before + cost, after + cost / (ratio or 1.0)
    assert found.value == pytest.approx(before / after)
    assert found.value > 1


def test_an_index_without_entries_serves_nothing_and_saves_nothing() -> None:
    empty = INDEX.model_copy(
        update={"definitions": tuple(d.model_copy(update={"entries": ()}) for d in INDEX.definitions)}
    )
    found = card(index=empty)
    assert {item.value for item in found.find("weighted_speedup")} == {1.0}
    assert {item.value for item in (*found.find("served_time"), *found.find("served_calls"))} == {0.0}


def test_where_a_time_is_missing_there_is_no_weighted_figure_rather_than_one_of_the_winners() -> None:
    mine = [item for item in WALKED.snapshot.workloads if item.split == "train"]
    blind = [item for item in WALKED.screened if item.job.workload_digest != mine[0].workload.digest]
    for name in ("weighted_speedup", "served_time"):
        (found,) = card(blind).find(name, side="train")
        assert (found.value, found.count, found.untimed, found.invalid) == (None, len(mine) - 1, 1, 0)
    (served,) = card(blind).find("served_calls", side="train")
    assert (served.value is not None, served.count, served.untimed) == (True, len(mine), 0)  # that needs no time
    by = measured(blind, SCREEN_TIMES)
    assert projections(WALKED.snapshot, INDEX, by, {GEMM.name: 0.3}, Overhead(2.0, "a bench")) == []


def test_what_the_machine_spoiled_is_kept_out_of_weighted_figures_and_counted() -> None:
    mine = [item for item in WALKED.snapshot.workloads if item.split == "train"]
    spoiled = [
        item.model_copy(update={"status": Status.INVALID, "samples_us": ()})
        if item.job.workload_digest == mine[0].workload.digest
        else item
        for item in WALKED.screened
    ]
    (found,) = card(spoiled).find("weighted_speedup", side="train")
    assert (found.value is not None, found.count, found.invalid, found.untimed) == (True, len(mine) - 1, 1, 0)


def test_holdout_ratios_are_measured_and_not_taken_from_train() -> None:
    (found,) = card().find("weighted_speedup", side="holdout")
    times = {pair: value * (3 if pair[0] != OLD else 1) for pair, value in measured(WALKED.screened, "").times.items()}
    (slower,) = card(by=Measured(times, "made up")).find("weighted_speedup", side="holdout")
    assert slower.value < found.value
    assert slower.times == "made up"
    (train,) = card(by=Measured(times, "made up")).find("weighted_speedup", side="train")
    assert train.value == card().find("weighted_speedup", side="train")[0].value


def test_pooling_counts_every_trial_once_names_all_baselines_and_keeps_sides_apart() -> None:
    other = "sha256:" + "b" * 64
    ones = screen_populations(WALKED.snapshot, WALKED.screened, WALKED.decisions)
    twos = [replace(item, definition="two", baseline=(other,), invalid=2) for item in ones]
    together = pooled([*ones, *twos])
    assert {item.side for item in together} == {"train", "holdout", "stress"}
    for item in together:
        assert item.definition == EVERY
        assert item.baseline == tuple(sorted((OLD, other)))
        mine = next(one for one in ones if one.side == item.side)
        assert (len(item.trials), item.invalid) == (2 * len(mine.trials), mine.invalid + 2)
    assert pooled(ones) == []  # one definition alone has nothing to be pooled with
    assert len(speed_scores(ones, (1.0,), 2.0)) == 2 * len(ones)


def test_a_projection_names_its_overhead_and_needs_a_share() -> None:
    by = measured(WALKED.screened, SCREEN_TIMES)
    name = WALKED.snapshot.definitions[0].name
    (row,) = projections(WALKED.snapshot, INDEX, by, {name: 0.3}, Overhead(2.0, "a bench"))
    (speedup,) = card().find("weighted_speedup", side="train")
    delta = 0.3 * 2.0 / row["call_us"]
    assert row["projected_speedup"] == pytest.approx(1 / (0.7 + 0.3 / speedup.value + delta))
    assert (row["overhead_source"], row["overhead_us"]) == ("a bench", 2.0)
    assert projections(WALKED.snapshot, INDEX, by, {}, Overhead(2.0, "a bench")) == []
    with pytest.raises(ContractError):
        projections(WALKED.snapshot, INDEX, by, {name: 1.2}, Overhead(2.0, "a bench"))


def test_the_roofline_is_per_workload_and_stress_has_no_served_share() -> None:
    bounded = [item.model_copy(update={"roofline_us": 1.0}) for item in WALKED.screened if item.status is Status.PASSED]
    rows = roofline_rows(WALKED.snapshot, INDEX, measured(bounded, SCREEN_TIMES), bounds_of(bounded))
    assert len(rows) == len(WALKED.snapshot.workloads)
    times = {item.job.workload_digest: median(item.samples_us) for item in bounded if item.job.solution_digest == OLD}
    for row in rows:
        assert row["incumbent"] == pytest.approx(1.0 / times[row["workload"]])
        assert row["served"] is None or row["served"] > row["incumbent"]
    assert all(row["served"] is None for row in rows if row["side"] == "stress")
    assert any(row["served"] is not None for row in rows)
    assert roofline_rows(WALKED.snapshot, INDEX, measured(bounded, SCREEN_TIMES), bounds_of(WALKED.screened)) == []


def test_a_snapshot_without_call_logs_says_so_in_its_weighted_scores() -> None:
    bare: Snapshot = WALKED.snapshot.model_copy(update={"weights": "none"})
    assert {item.weights for item in card(snapshot=bare).traffic} == {"none"}

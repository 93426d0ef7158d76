"""Report: the numbers of a run add up, and a page says what a person asks first."""

from collections import Counter
from dataclasses import replace

import pytest

from fib_core import dispatch, report
from fib_core.speed import coverage, fast_p, weighted_speedups
from schemas.evaluation import Status
from schemas.trace import TraceRecord
from schemas.workload import Workload
from tests.core.road import walk
from tests.core.world import DEVICE, World, gemm, solution


def verdict(name: str, workload: Workload) -> Status:
    if name == "wrong":
        return Status.INCORRECT_NUMERICAL
    return Status.TIMEOUT if name == "hangs" and workload.axes["M"] > 8 else Status.PASSED


NAMES = ("fast", "wrong", "hangs")
WALKED = walk(
    World({"old": 1.0, "fast": 0.5, "wrong": 0.1, "hangs": 0.1}, verdict=verdict),
    [solution(name, gemm()) for name in NAMES],
)
FACTS = report.RunFacts(
    snapshot=WALKED.snapshot, solutions=WALKED.solutions, screen=WALKED.screened, decisions=WALKED.decisions,
    profile="quick", channel="quick", index_digest="sha256:" + "1" * 64, quarantined_count=3, read_count=60,
    wall_s=1.23456,
)  # fmt: skip


def test_the_summary_has_exactly_the_published_keys() -> None:
    assert list(report.summary(FACTS)) == [
        "snapshot_digest", "index_digest", "channel", "profile", "op_types", "evaluations", "promoted",
        "kept_incumbent", "flow_run_id", "mlflow_run_id", "wall_s",
    ]  # fmt: skip


def test_counts_of_the_summary_add_up() -> None:
    body = report.summary(FACTS)
    assert sum(body["evaluations"].values()) == len(WALKED.snapshot.workloads) * len(WALKED.solutions)
    assert len(body["promoted"]) + body["kept_incumbent"] == len(WALKED.contest.keys)
    assert set(body["evaluations"]) == {"PASSED", "INCORRECT_NUMERICAL", "TIMEOUT"}
    assert {row["solution"] for row in body["promoted"]} == {"fast"}
    assert all(row["interval"][0] <= row["ratio"] <= row["interval"][1] for row in body["promoted"])


def test_a_pair_that_was_evaluated_again_counts_once_with_its_last_verdict() -> None:
    again = [item.model_copy(update={"status": Status.INVALID}) for item in WALKED.screened[:2]]
    counts = report.status_counts([*WALKED.screened, *again])
    assert sum(counts.values()) == len(WALKED.screened)
    assert counts["INVALID"] == 2


def test_failures_are_grouped_by_solution_status_and_rule_with_reason_and_log() -> None:
    rows = report.failure_rows(WALKED.screened, WALKED.snapshot, WALKED.solutions)
    expected = Counter(item.status.value for item in WALKED.screened if item.status is not Status.PASSED)
    assert Counter({row["status"]: row["workloads"] for row in rows}) == expected
    found = [(row["solution"], row["status"]) for row in rows]
    assert found == [("wrong", "INCORRECT_NUMERICAL"), ("hangs", "TIMEOUT")]
    assert all(row["reason"] == "made up" and row["log"].startswith("line") for row in rows)


def test_every_decision_is_a_row_promotions_first() -> None:
    rows = report.decision_rows(WALKED.decisions, WALKED.solutions)
    assert len(rows) == len(WALKED.decisions)
    verdicts = [row["verdict"] for row in rows]
    assert verdicts == sorted(verdicts, key=lambda item: item != "promoted")
    assert all(row["reason"] for row in rows)


def test_fast_p_counts_failures_and_what_does_not_apply_against_the_field() -> None:
    shares = fast_p(WALKED.screened, WALKED.decisions, WALKED.solutions)
    candidates = [item for item in WALKED.screened if item.job.role == "candidate"]
    passed = sum(item.status is Status.PASSED for item in candidates)
    assert shares[0.0] == pytest.approx(passed / len(candidates))
    assert shares[0.0] >= shares[1.0] >= shares[1.5] >= shares[2.0]
    outside = [(next(iter(WALKED.solutions)), f"w{n}") for n in range(len(candidates))]
    assert fast_p(WALKED.screened, WALKED.decisions, WALKED.solutions, outside)[0.0] == pytest.approx(shares[0.0] / 2)


def test_without_an_incumbent_there_is_no_fast_p() -> None:
    assert fast_p(WALKED.screened, [], WALKED.solutions) == {}


def test_the_weighted_speedup_counts_what_the_index_serves_and_one_elsewhere() -> None:
    (ratio,) = weighted_speedups(WALKED.snapshot, WALKED.decisions).values()
    best = max(item.estimates[0].ratio for item in WALKED.decisions if item.verdict == "promoted")
    assert 1.0 < ratio < best
    kept = [item.model_copy(update={"verdict": "kept_incumbent"}) for item in WALKED.decisions]
    assert weighted_speedups(WALKED.snapshot, kept) == {"gemm_n8_k4": 1.0}


def test_coverage_is_the_share_of_calls_in_a_box_and_of_those_that_change_kernel() -> None:
    index = dispatch.build(WALKED.snapshot, WALKED.decisions, WALKED.solutions, "quick", DEVICE, {})
    entries = index.definitions[0].entries
    changed = next(item for item in entries if item.solution_digest).box.axes["M"][0]
    kept = next(item for item in entries if item.solution_digest is None).box.axes["M"][0]
    calls = [TraceRecord(definition="gemm_n8_k4", axes={"M": size}) for size in (changed, changed, kept, 10**6)]
    found = coverage(index, [*calls, TraceRecord(definition="other", axes={"M": 1})])
    assert found == {"gemm_n8_k4": (0.75, 0.5)}
    assert "| 75% | 50% |" in report.page(replace(FACTS, coverage=found))


def test_metrics_are_finite_numbers_that_show_shares() -> None:
    numbers = report.metrics(FACTS)
    assert all(isinstance(value, float) and abs(value) < 1e9 for value in numbers.values())
    assert numbers["quarantined_share"] == 0.05
    assert numbers["invalid_share"] == 0.0
    assert numbers["keys.promoted"] + numbers["keys.kept_incumbent"] == len(WALKED.decisions)


def test_the_page_names_promotions_failures_and_what_was_left_out() -> None:
    text = report.page(FACTS)
    assert "quarantined 3 of 60 lines" in text
    assert "keys promoted" in text
    assert "| gemm_n8_k4 | wrong | INCORRECT_NUMERICAL |" in text
    assert "not timed in the profile quick" in text


def test_a_cell_cannot_break_its_table() -> None:
    assert report.table([{"a": "x|y\nz", "b": None}], ("a", "b")).splitlines()[-1] == "| x\\|y z | - |"
    assert report.table([], ("a",)) == "None."

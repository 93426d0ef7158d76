"""Report: the numbers of a run add up, and a page says what a person asks first."""

import json
from collections import Counter
from dataclasses import replace

from fib_core import dispatch, report
from fib_core.account.controls import LEVEL, control_rows, controls_of, discoveries_of
from fib_core.account.coverage import Coverage
from fib_core.account.report_page import cold_section, percent
from fib_core.account.report_rows import account_rows, conditions, failed_counts
from fib_core.account.scoring import AREA_TO
from schemas.evaluation import Status
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
INDEX = dispatch.build(WALKED.snapshot, WALKED.decisions, WALKED.solutions, "quick", DEVICE, {}, WALKED.measured)
COVERAGE = Coverage("gemm_n8_k4", 100, 75, 50, 40, 30, 10, 3, 2)
FACTS = report.RunFacts(
    snapshot=WALKED.snapshot, solutions=WALKED.solutions, screen=WALKED.screened, decisions=WALKED.decisions,
    profile="quick", channel="quick", index_digest="sha256:" + "1" * 64, quarantined_count=3, read_count=60,
    wall_s=1.23456, index=INDEX, coverage=[COVERAGE],
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


def test_metrics_are_finite_numbers_that_show_shares() -> None:
    numbers = report.metrics(FACTS)
    assert all(isinstance(value, float) and abs(value) < 1e9 for value in numbers.values())
    assert numbers["quarantined_share"] == 0.05
    assert numbers["invalid_share"] == 0.0
    assert numbers["keys.promoted"] + numbers["keys.kept_incumbent"] == len(WALKED.decisions)
    assert numbers["keys.invalid"] == numbers["controls.promoted"] == 0.0
    assert numbers["coverage.gemm_n8_k4.holdout"] == 0.25
    assert numbers["confirmed.fast_p.1.train.gemm_n8_k4"] == numbers["keys.promoted"] / len(WALKED.decisions)
    assert not any(name.startswith("confirmed") and "stress" in name for name in numbers)


def test_the_page_names_promotions_failures_and_what_was_left_out() -> None:
    text = report.page(FACTS)
    assert "quarantined 3 of 60 lines" in text
    assert "keys promoted" in text
    assert "| gemm_n8_k4 | wrong | INCORRECT_NUMERICAL |" in text
    assert "not timed in the profile quick" in text


def test_the_page_has_a_section_for_every_question_and_none_is_empty() -> None:
    parts = report.page(FACTS).split("\n## ")[1:]
    names = [part.splitlines()[0] for part in parts]
    assert names == [
        "Decisions", "Scores", "Served calls", "Cold path", "Roofline", "Controls and false discoveries", "Failures",
        "Toothless workloads", "What became of everything",
    ]  # fmt: skip
    assert all(len(part.splitlines()) > 2 for part in parts)


def test_held_out_calls_are_shown_beside_all_calls_with_their_boxes() -> None:
    assert "| gemm_n8_k4 | 100 | 75% | 50% | 40 | 75% | 25% | 3 (2 of one point) |" in report.page(FACTS)


def test_every_score_on_the_page_says_against_whom_and_from_which_times() -> None:
    section = report.page(FACTS).split("## Scores")[1].split("## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| fast_1 ")]
    baseline = (WALKED.decisions[0].incumbent_digest or "")[7:19]
    assert len(rows) == 4  # confirmed keys, and the screen's three sides
    assert all(baseline in row for row in rows)
    assert ["confirmed estimates" in row for row in rows] == [True, False, False, False]
    assert all("screen times: ranking only" in row for row in rows[1:])


def test_extras_keep_out_of_the_published_shape_and_survive_json() -> None:
    more = report.extras(FACTS)
    assert not more.keys() & report.summary(FACTS).keys()
    assert json.loads(json.dumps(more)) == more
    assert more["coverage"][0]["holdout_served"] == 10


def test_accounts_add_up_to_what_was_read_judged_and_decided() -> None:
    accounts = replace(FACTS, not_applicable=[("a", "b")]).accounts
    assert sum(accounts["lines"].values()) == FACTS.read_count
    assert sum(accounts["pairs"].values()) == len(WALKED.screened) + 1
    assert sum(accounts["keys"].values()) == len(WALKED.decisions)
    rows = account_rows(accounts)
    for of, counts in accounts.items():
        mine = [row for row in rows if row["of"] == of]
        assert mine[-1] == {"of": of, "what": "sum", "count": sum(counts.values()), "share": 1.0}
        assert abs(sum(row["share"] for row in mine[:-1]) - 1) < 1e-9


def test_a_row_shows_which_of_the_four_conditions_held() -> None:
    promoted = next(item for item in WALKED.decisions if item.verdict == "promoted")
    assert conditions(promoted) == "++++"
    kept = promoted.model_copy(update={"verdict": "kept_incumbent", "failed": ("min_effect", "gates_speed")})
    assert conditions(kept) == "+-+-"
    assert failed_counts([promoted, kept]) == {
        "significance": 0, "min_effect": 1, "gates_passed": 0, "gates_speed": 1,
    }  # fmt: skip
    spoiled = promoted.model_copy(update={"verdict": "invalid", "causes": ("drift",)})
    assert conditions(spoiled) == ""
    assert report.decision_rows([spoiled], {})[0]["causes"] == "drift"


def test_controls_are_counted_over_all_decisions_and_a_promoted_one_is_seen() -> None:
    judged = [item for item in WALKED.decisions if item.control is not None]
    assert judged
    sound = controls_of(WALKED.decisions)
    assert (sound.count, sound.promoted) == (len(judged), 0)
    assert judged[0].control is not None
    won = judged[0].control.model_copy(update={"ratio": 1.5, "interval": (1.4, 1.6), "p_holm": 1e-4})
    spoiled = [judged[0].model_copy(update={"control": won, "verdict": "invalid"}), *judged[1:]]
    found = controls_of(spoiled)
    assert (found.promoted, found.widest) == (1, 1.5)
    assert control_rows(spoiled)[0]["ratio"] == 1.5
    assert "1 of " in report.page(replace(FACTS, decisions=spoiled)).split("## Controls")[1].splitlines()[2]


def test_false_discoveries_are_counted_over_tested_keys_only() -> None:
    found = discoveries_of(WALKED.decisions)
    assert found.tested == sum(bool(item.estimates) for item in WALKED.decisions) < len(WALKED.decisions)
    assert found.promoted == sum(item.verdict == "promoted" for item in WALKED.decisions)
    assert found.worst is not None
    assert found.worst <= LEVEL
    blunt = [
        item.model_copy(update={"estimates": tuple(e.model_copy(update={"p_holm": 0.9}) for e in item.estimates)})
        for item in WALKED.decisions
    ]
    assert discoveries_of(blunt).found == 0


def test_the_terminal_gets_three_lines_at_most_and_none_without_evidence() -> None:
    lines = report.closing_lines(FACTS)
    assert [line.split()[0] for line in lines] == ["scores", "served"]
    assert "25% of 40 held-out calls" in lines[1]
    cold = [item.model_copy(update={"first_call_us": 3e5, "first_shape_us": 3e5}) for item in WALKED.screened]
    assert "300.0 ms" in report.closing_lines(replace(FACTS, screen=cold))[2]
    assert f"area to {AREA_TO:g}" in lines[0]
    assert report.closing_lines(replace(FACTS, decisions=[], coverage=())) == []


def test_the_cold_path_tells_first_calls_from_first_shapes_and_names_the_worst() -> None:
    workloads = [item.workload for item in WALKED.snapshot.workloads]
    digest = next(digest for digest, one in WALKED.solutions.items() if one.name == "fast")
    mine = {item.job.workload_digest: item for item in WALKED.screened if item.job.solution_digest == digest}
    costs = [9e5, 100.0, 4e4, 50.0]
    told = [
        mine[workload.digest].model_copy(update={"first_shape_us": cost} | first)
        for workload, cost, first in zip(
            workloads, costs, [{"build_s": 1.5, "first_call_us": 9e5}, {}, {}, {}], strict=False
        )
    ]
    (row,) = replace(FACTS, screen=told).cold
    assert (row["solution"], row["build_s"], row["processes"], row["shapes"]) == ("fast", 1.5, 1, 4)
    assert (row["worst_first_call_us"], row["worst_first_shape_us"], row["first_shape_us"]) == (9e5, 4e4, 100.0)
    assert row["worst_shape"] == f"M={workloads[2].axes['M']}"
    assert "| gemm_n8_k4 | fast | 1.50 s | 900.0 ms | 40.0 ms |" in cold_section([row])
    disguised = [item.model_copy(update={"job": item.job.model_copy(update={"role": "control"})}) for item in told]
    assert replace(FACTS, screen=disguised).cold == []


def test_small_shares_are_not_rounded_to_nothing() -> None:
    assert [percent(share) for share in (0.0, 1.2e-4, 0.004, 0.5, None)] == ["0%", "0.00012", "0.4%", "50%", None]


def test_a_cell_cannot_break_its_table() -> None:
    assert report.table([{"a": "x|y\nz", "b": None}], ("a", "b")).splitlines()[-1] == "| x\\|y z | - |"
    assert report.table([], ("a",)) == "None."


def test_a_run_that_published_nothing_says_why_on_its_page_and_in_its_summary() -> None:
    kept_back = replace(FACTS, not_published="X was rolled back from quick at noon")
    assert "**not published**: X was rolled back from quick at noon" in report.page(kept_back)
    assert report.extras(kept_back)["not_published"] == "X was rolled back from quick at noon"
    assert "not published" not in report.page(FACTS)
    assert report.extras(FACTS)["not_published"] is None

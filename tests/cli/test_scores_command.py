"""fib scores: reads what a run left in the store, measures nothing, and refuses what it cannot answer."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from fib_core import dispatch, ledger
from fib_core.account.past import decisions_in, read_past, save_screen
from fib_core.account.scorecard import scorecard
from fib_core.account.scoring import CONFIRMED
from fib_core.errors import ContractError, ObjectMissing, StoreRefused
from fib_core.runtime import index_client
from fib_core.runtime.pulled import object_key
from flows.cli import scores
from schemas.screen_log import ScreenLog
from tests.core.road import Walked, walk
from tests.core.world import DEVICE, World, gemm, solution
from tests.fakes.memory_store import MemoryStore
from tests.runtime.published import publish

GEMM = gemm()
WALKED = walk(World({"old": 1.0, "fast": 0.5}), [solution("fast", GEMM)])
INDEX = dispatch.build(WALKED.snapshot, WALKED.decisions, WALKED.solutions, "quick", DEVICE, {}, WALKED.measured)


@dataclass
class Shop:
    app: typer.Typer
    store: MemoryStore

    def ask(self, *arguments: str) -> dict[str, Any]:
        result = CliRunner().invoke(self.app, [*arguments, "--json"], catch_exceptions=False)
        assert result.exit_code == 0
        return json.loads(result.stdout)  # type: ignore[no-any-return]


def left_by_a_run(store: MemoryStore, walked: Walked = WALKED) -> None:
    """What the pipeline stores, and what it publishes."""
    ledger.save(store, "snapshots", walked.snapshot)
    for decision in walked.decisions:
        ledger.save(store, "decisions", decision)
    for evaluation in (*walked.screened, *walked.rounds.values()):
        ledger.record(store, evaluation)
    save_screen(store, INDEX.digest, walked.screened, [])
    owned = {item.solution_digest: (GEMM, walked.solutions[item.solution_digest]) for item in INDEX.solutions}
    publish(store, (INDEX, owned), definitions=(GEMM,))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name in ("FIB_CACHE", "FIB_STORE", "FIB_CHANNEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FIB_HOME", str(tmp_path))
    app = typer.Typer()
    scores.register(app)
    app.command("other")(lambda: None)  # a single command would be called without its name
    store = MemoryStore()
    left_by_a_run(store)
    monkeypatch.setattr(index_client, "open_store", lambda _: store)
    return Shop(app, store)


def rows(answer: dict[str, Any], name: str, **fields: Any) -> list[dict[str, Any]]:
    return [row for row in answer["scores"] if row["name"] == name and fields.items() <= row.items()]


def test_the_whole_area_is_json_that_any_reader_takes(shop: Shop) -> None:
    """Python's own reader takes a bare Infinity; others stop there."""
    result = CliRunner().invoke(shop.app, ["scores", "--json", "--area-to", "inf"], catch_exceptions=False)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    answer = json.loads(result.stdout, parse_constant=refuse)
    whole = rows(answer, "area", population="keys, each as it is served")
    assert {row["parameter"] for row in whole} == {"Infinity"}
    assert whole[0]["value"] > 1


def test_scores_come_from_the_store_and_count_every_decision(shop: Shop) -> None:
    answer = shop.ask("scores")
    assert answer["snapshot_digest"] == WALKED.snapshot.digest
    assert answer["decisions"] == {"read": len(WALKED.decisions), "missing": 0}
    (row,) = rows(answer, "fast_p", parameter=1.0, times="confirmed estimates")
    promoted = sum(item.verdict == "promoted" for item in WALKED.decisions)
    assert row["value"] == promoted / len(WALKED.decisions)
    assert (row["times"], row["snapshot_digest"]) == ("confirmed estimates", WALKED.snapshot.digest)
    assert answer["controls"]["count"] == sum(item.control is not None for item in WALKED.decisions)


def test_without_the_screens_log_no_screen_score_is_claimed_and_no_untimed_call_is_guessed(shop: Shop) -> None:
    shop.store.delete(object_key("screens", INDEX.digest))
    answer = shop.ask("scores")
    assert not any("screen" in row["times"] for row in answer["scores"])
    (train,) = rows(answer, "weighted_speedup", side="train")
    assert "confirmation rounds" in train["times"]
    timed = {item.workload.digest for item in WALKED.contest.timed}
    untimed = [p for p in WALKED.snapshot.workloads if p.split == "train" and p.workload.digest not in timed]
    assert train["untimed"] == len(untimed) > 0
    assert train["value"] is None


def test_with_the_screens_log_every_score_of_the_run_is_there(shop: Shop) -> None:
    answer = shop.ask("scores")
    (train,) = rows(answer, "weighted_speedup", side="train")
    assert (train["untimed"], train["value"] > 1) == (0, True)
    assert "else screen times: ranking only" in train["times"]
    for side in ("train", "holdout", "stress"):
        (row,) = rows(answer, "fast_p", side=side, parameter=0.0, times="screen times: ranking only")
        assert row["value"] == 1.0


def test_the_screens_log_stays_as_it_was_first_written(shop: Shop) -> None:
    before = shop.ask("scores")
    save_screen(shop.store, INDEX.digest, WALKED.screened[:1], [])
    assert shop.ask("scores") == before


def test_a_log_of_another_index_is_refused(shop: Shop) -> None:
    key = object_key("screens", INDEX.digest)
    shop.store.delete(key)
    log = ScreenLog(index_digest="sha256:" + "c" * 64, evaluations=())
    shop.store.put_once(key, log.model_dump_json().encode())
    with pytest.raises(StoreRefused, match="log of sha256:c"):
        shop.ask("scores")


def test_any_threshold_and_any_end_of_the_area_may_be_asked_for(shop: Shop) -> None:
    answer = shop.ask("scores", "--p", "1.1", "--p", "100", "--area-to", "1.5")
    confirmed = {"times": "confirmed estimates"}
    assert [row["parameter"] for row in rows(answer, "fast_p", **confirmed)] == [1.1, 100.0]
    assert {row["value"] for row in rows(answer, "fast_p", parameter=100.0)} == {0}
    (area,) = rows(answer, "area", **confirmed)
    assert (area["parameter"], 1 <= area["value"] <= 1.5) == (1.5, True)
    with pytest.raises(ContractError, match="ends above 0"):
        shop.ask("scores", "--area-to", "0")


def test_an_evaluation_that_is_gone_is_counted_and_leaves_no_weighted_figure(shop: Shop) -> None:
    before = shop.ask("scores")
    named = {digest for decision in WALKED.decisions for digest in decision.evaluations}
    assert before["evaluations"] == {"rounds": len(named), "screen": len(WALKED.screened), "missing": 0}
    for digest in [*named, *(item.digest for item in WALKED.screened)]:
        shop.store.delete(object_key("evaluations", digest))
    after = shop.ask("scores")
    assert after["evaluations"] == {"rounds": 0, "screen": 0, "missing": len(named) + len(WALKED.screened)}
    assert {row["value"] for row in rows(after, "weighted_speedup")} == {None}
    confirmed = {"times": "confirmed estimates"}
    assert rows(after, "fast_p", **confirmed) == rows(before, "fast_p", **confirmed)
    assert rows(after, "served_calls") == rows(before, "served_calls")


def test_a_projection_names_where_its_overhead_was_measured(shop: Shop, tmp_path: Path) -> None:
    bench = {"control_holds": True, "cases": {"hit, a": {"overhead_us": 3.0}, "hit, b": {"overhead_us": 5.0}}}
    file = tmp_path / "apply.json"
    file.write_text(json.dumps(bench))
    (row,) = shop.ask("scores", "--share", f"{GEMM.name}=0.2", "--overhead-from", str(file))["projections"]
    assert row["overhead_us"] == 5.0
    assert str(file) in row["overhead_source"]
    (cheap,) = shop.ask("scores", "--share", f"{GEMM.name}=0.2", "--overhead-us", "0")["projections"]
    assert cheap["projected_speedup"] > row["projected_speedup"]
    file.write_text(json.dumps(bench | {"control_holds": False}))
    with pytest.raises(ContractError, match="no sound measurement"):
        shop.ask("scores", "--share", f"{GEMM.name}=0.2", "--overhead-from", str(file))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--share", "gemm_n8_k4=0.2"], "needs what a dispatched call costs"),
        (["--share", "gemm_n8_k4", "--overhead-us", "1"], "is not DEFINITION=number"),
        (["--share", "nobody=0.2", "--overhead-us", "1"], "does not hold"),
        (["--share", "gemm_n8_k4=1.2", "--overhead-us", "1"], "between 0 and 1"),
        (["--p", "-1"], "p >= 0"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_in_words(shop: Shop, arguments: list[str], words: str) -> None:
    with pytest.raises(ContractError, match=words):
        shop.ask("scores", *arguments)


def test_a_channel_that_is_not_there_is_an_expected_error(shop: Shop) -> None:
    with pytest.raises(ObjectMissing, match="no channel 'stable'"):
        shop.ask("scores", "--channel", "stable")


def test_people_get_the_same_numbers_as_scripts(shop: Shop) -> None:
    text = CliRunner().invoke(shop.app, ["scores"], catch_exceptions=False).stdout
    (row,) = rows(shop.ask("scores"), "weighted_speedup", side="train")
    assert f"{row['value']:.3f}" in text
    assert f"{len(WALKED.decisions)} decisions" in text
    assert "missing" not in text


@settings(max_examples=10, deadline=None)
@given(st.sets(st.integers(0, len(WALKED.decisions) - 1)))
def test_whatever_decisions_are_gone_the_rest_is_scored_and_the_loss_counted(gone: set[int]) -> None:
    store = MemoryStore()
    left_by_a_run(store)
    lost = {WALKED.decisions[number].digest for number in gone}
    for digest in lost:
        store.delete(object_key("decisions", digest))
    past = read_past(store, INDEX)
    assert set(decisions_in(INDEX)) == {item.digest for item in WALKED.decisions}
    assert (len(past.decisions), past.missing_decisions) == (len(WALKED.decisions) - len(lost), len(lost))
    card = scorecard(past.evidence)
    assert {item.count for item in card.find("fast_p", 1.0, times=CONFIRMED)} <= {len(past.decisions)}


def test_a_damaged_record_is_refused_and_not_scored(shop: Shop) -> None:
    changed = WALKED.decisions[0].model_copy(update={"rounds": 99})
    shop.store.objects[object_key("decisions", WALKED.decisions[0].digest)] = changed.model_dump_json().encode()
    with pytest.raises(StoreRefused, match="damaged"):
        shop.ask("scores")

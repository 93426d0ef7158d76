"""The A/A report counts what the store holds: every decision once, a control that won, nothing of other definitions."""

from collections.abc import Iterator
from functools import cache

import pytest
from prefect.logging import disable_run_logger

from fib_core import ledger
from schemas.canonical import digest_of
from schemas.decision import Decision
from tasks.confirm import _settled
from tests.benchmarks import aa_report
from tests.core.world import World
from tests.fakes.memory_store import MemoryStore
from tests.tasks.world_house import house_of, screened_of


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with disable_run_logger():
        yield


@cache
def campaign(fast: float, control_gain: float) -> tuple[Decision, ...]:
    world = World({"old": 1.0, "fast": fast}, noise=0.004, control_gain=control_gain)
    house = house_of(world, profile="full")
    return tuple(_settled(house, screened_of(world, house), None).values())


def decided(name: str, fast: float, control_gain: float = 1.0) -> list[Decision]:
    """Decisions of a full campaign whose candidate takes ``fast`` of the incumbent's time, under another name."""
    renamed = {"definition": f"{name}_gemm", "definition_digest": digest_of(name)}
    return [item.model_copy(update=renamed) for item in campaign(fast, control_gain)]


def test_counts_add_up_and_only_our_definitions_are_counted() -> None:
    store = MemoryStore()
    mine = [*decided("aa", 1.0), *decided("slow2", 1 / 1.02), *decided("slow5", 1 / 1.05)]
    for item in [*mine, *decided("somebodys", 1.0)]:
        ledger.save(store, "decisions", item)
    found = aa_report.decisions_of(store)
    assert {item.digest for item in found} == {item.digest for item in mine}
    report = aa_report.report(found)
    assert sum(report["verdicts"]["total"].values()) == report["decisions"] == len(mine)
    parts = [sum(report["verdicts"][name].values()) for name in aa_report.VARIANTS]
    assert sum(parts) == report["decisions"]
    assert report["control"]["keys"]["count"] == 0
    assert report["aa_candidate"]["count"] == 0
    assert report["power"]["slow5"]["total"]["share"] > 0.5
    by_length = report["power"]["slow5"]["by_length"].values()
    assert sum(row["of"] for row in by_length) == report["power"]["slow5"]["total"]["of"]
    assert abs(report["power"]["slow5"]["gain"]["mean"] - 0.05) < 0.01


def test_a_control_that_wins_is_seen() -> None:
    report = aa_report.report(decided("aa", 1.0, control_gain=1.1))
    assert report["control"]["keys"]["share"] > 0.9
    assert report["control"]["contests"] | {"interval_95": None, "upper_95": None} == {
        "count": 1, "of": 1, "share": 1.0, "interval_95": None, "upper_95": None,
    }  # fmt: skip
    assert report["verdicts"]["total"] == {"invalid": report["decisions"]}
    assert report["aa_candidate"]["of"] == 0, "what is INVALID judged nobody"


def test_none_of_150_bounds_the_rate_below_two_percent() -> None:
    row = aa_report.share(0, 150)
    assert row["upper_95"] == pytest.approx(1 - 0.05 ** (1 / 150))
    assert row["upper_95"] < 0.02 < row["interval_95"][1]


def test_a_decision_that_lacked_rounds_gives_way_to_the_one_that_did_not() -> None:
    store, items = MemoryStore(), decided("aa", 1.0)
    unfinished = [item.model_copy(update={"verdict": "not_enough_rounds", "reason": "cut"}) for item in items]
    for item in [*unfinished, *items]:
        ledger.save(store, "decisions", item)
    assert len(aa_report.decisions_of(store)) == len(items)
    assert {item.verdict for item in aa_report.decisions_of(store)} == {item.verdict for item in items}


def test_reports_of_several_homes_add_up_and_keep_their_own_power() -> None:
    runs = [aa_report.report(decided("aa", 1.0, control_gain=1.1)), aa_report.report(decided("slow5", 1.05))]
    both = aa_report.merged(runs)
    assert both["decisions"] == sum(run["decisions"] for run in runs) == sum(both["verdicts"].values())
    for unit in ("keys", "contests"):
        parts = [run["control"][unit] for run in runs]
        assert both["control"][unit]["count"] == sum(part["count"] for part in parts) > 0
        assert both["control"][unit]["of"] == sum(part["of"] for part in parts)
    assert both["aa_candidate"]["of"] == runs[0]["aa_candidate"]["of"]
    assert both["runs"] == runs
    assert "power" not in both

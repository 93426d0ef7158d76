"""The selection benchmark on a small scale: its counts add up, its figures repeat, and it can fail."""

from collections.abc import Callable

import pytest

from tests.benchmarks import bench_selection as bench

ROWS = {row.name: row for row in bench.ROWS}


def run(name: str, campaigns: int = 12) -> dict:
    return bench.measured(ROWS[name], campaigns, 1)


def test_every_campaign_is_counted_once_and_the_same_seed_gives_the_same_figures() -> None:
    first = run(bench.NULL)
    assert sum(first["counts"].values()) == first["campaigns"] == 12
    assert first == run(bench.NULL)
    assert first != bench.measured(ROWS[bench.NULL], 12, 2)


def test_a_real_gain_is_found_and_published_near_its_truth() -> None:
    found = run("one +3 %")
    assert found["found"] > 0.8
    assert abs(found["bias_points"]) < 0.6
    assert found["published"] == found["counts"]["promoted_best"]


@pytest.mark.parametrize(
    ("name", "failed"),
    [
        ("control: rounds in one process", lambda row: row["false_promotion"] >= 0.15),
        ("control: false incumbent +3 %", lambda row: row["counts"]["control_won"] == row["campaigns"]),
        ("control: throttles by 12 %", lambda row: row["counts"]["machine_invalid"] >= 0.7 * row["campaigns"]),
    ],
)
def test_the_controls_show_that_it_can_fail(name: str, failed: Callable[[dict], bool]) -> None:
    assert ROWS[name].control
    assert failed(run(name, 24))


def test_exact_bounds_are_those_of_clopper_and_pearson() -> None:
    assert bench.upper(0, 150) == pytest.approx(1 - 0.05 ** (1 / 150))
    assert bench.lower(150, 150) == pytest.approx(0.05 ** (1 / 150))
    assert (bench.lower(0, 9), bench.upper(9, 9)) == (0.0, 1.0)

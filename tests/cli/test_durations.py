"""How long a run may take is written as people write it, and anything else is refused in one sentence."""

import pytest

from fib_core.errors import ContractError
from flows.cli.durations import duration_s, further, published


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1h", 3600), ("1.5h", 5400), ("45", 45)])
def test_seconds_minutes_and_hours_are_understood(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0s", "-5m", "ten minutes", "1d", "5 m m", "inf", "nan", "1e3"])
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ContractError, match="write 90s, 10m or 1h"):
        duration_s(text)


def test_a_run_without_further_campaigns_says_nothing_of_them() -> None:
    assert further({"stopped": False}) == []


def test_further_campaigns_say_how_many_are_finished_and_how_to_go_on() -> None:
    campaigns = {"asked": [0, 1, 2], "finished": [0, 1], "verdicts": {"promoted": 2, "invalid": 1}}
    lines = further({"campaigns": campaigns, "stopped": True, "stopped_at": "round 3 of 20 of x, campaign 2"})
    assert "2 of 3 finished; after the first: 1 invalid, 2 promoted" in lines[0]
    assert "round 3 of 20 of x, campaign 2; start the same command again" in lines[1]


def test_a_run_says_where_its_index_went_or_why_it_went_nowhere() -> None:
    summary = {"index_digest": "sha256:1", "channel": "dev", "profile": "quick", "not_published": None}
    assert published(summary) == ["index        sha256:1 in channel dev (quick)"]
    lines = published(summary | {"not_published": "sha256:1 was rolled back from dev at noon"})
    assert lines[1] == "not published: sha256:1 was rolled back from dev at noon"
    assert "in channel" not in lines[0]

"""The stage after a rollback: the run ends well and says why the channel stayed where an operator put it."""

import logging

import pytest

from fib_core.publication import history
from fib_core.publish import rollback
from tasks import publish as stage
from tasks.settings import Settings
from tasks.wiring import House
from tests.core.world import ENVIRONMENT
from tests.fakes.memory_store import MemoryStore
from tests.publish.material import Made, made, put, terms

GOOD, BAD = made("good"), made("bad", dps=True)


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Artifacts by key; logs go to an ordinary logger."""
    shown: dict[str, str] = {}
    monkeypatch.setattr(stage, "get_run_logger", lambda: logging.getLogger("stage"))
    monkeypatch.setattr(stage, "show_markdown", lambda key, text, _: shown.update({key: text}))
    monkeypatch.setattr(stage.release, "terms", lambda new_signer: terms(9, signer=None))
    return shown


@pytest.fixture
def store() -> MemoryStore:
    found = MemoryStore()
    for hour, item in enumerate((GOOD, BAD)):
        put(found, item, under=terms(hour, signer=None))
    rollback(found, "dev", None, terms(2, signer=None))
    return found


def publish(store: MemoryStore, item: Made) -> str | None:
    house = House(Settings(channel="dev"), store, None, None, ENVIRONMENT)  # type: ignore[arg-type]
    reason: str | None = stage.publish.fn(house, *item, [])
    return reason


def test_an_index_that_was_rolled_back_is_a_reason_a_page_and_a_warning_and_no_failure(store, pages, caplog) -> None:
    before = history.current(store, "dev")
    reason = publish(store, BAD)
    assert reason is not None
    assert reason.startswith(f"{BAD[0].digest} was rolled back from dev at {before.published_at}; nothing new was")
    assert pages == {"not-published": f"not published: {reason}"}
    assert [item.getMessage() for item in caplog.records if item.levelno == logging.WARNING] == [pages["not-published"]]
    assert history.current(store, "dev") == before


@pytest.mark.parametrize("item", [GOOD, made("new")])
def test_what_was_not_rolled_back_is_published_without_a_word(store, pages, caplog, item) -> None:
    assert publish(store, item) is None
    assert history.current(store, "dev").index_digest == item[0].digest
    assert pages == {}
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_another_index_that_serves_a_rolled_back_solution_is_published_and_says_so(store, pages, caplog) -> None:
    again = made("decided anew", dps=True)
    assert publish(store, again) is None
    assert history.current(store, "dev").index_digest == again[0].digest
    (said,) = [item.getMessage() for item in caplog.records if item.levelno == logging.WARNING]
    assert f"serves again what left it with the rollback at {terms(2).now}: {BAD[0].solutions[0].name} of " in said
    assert "has to leave the dataset" in said

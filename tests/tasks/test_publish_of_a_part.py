"""A run of some definitions replaces the whole index of its channel, and says whose entries go."""

import logging

import pytest

from fib_core.publication import history
from fib_core.publish import index_key
from tasks import publish as stage
from tasks.settings import Settings
from tasks.wiring import House
from tests.core.world import ENVIRONMENT
from tests.fakes.memory_store import MemoryStore
from tests.publish.material import Made, made, put, save_definitions, terms

BOTH, PART = made(fused=True), made("2")
DROPPED = BOTH[0].definitions[1].name


@pytest.fixture(autouse=True)
def _plain_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "get_run_logger", lambda: logging.getLogger("stage"))
    monkeypatch.setattr(stage.release, "terms", lambda new_signer: terms(hours=1, signer=None))


def publish(store: MemoryStore, item: Made, channel: str = "dev") -> None:
    house = House(Settings(channel=channel), store, None, None, ENVIRONMENT)  # type: ignore[arg-type]
    stage.publish.fn(house, *item, [])


def filled() -> MemoryStore:
    store = MemoryStore()
    put(store, BOTH, under=terms(signer=None))
    return store


def test_a_run_of_one_definition_says_whose_entries_its_channel_loses(caplog) -> None:
    store = filled()
    publish(store, PART)
    assert history.current(store, "dev").index_digest == PART[0].digest
    (said,) = [item.getMessage() for item in caplog.records if item.levelno == logging.WARNING]
    assert f"channel dev no longer serves {DROPPED} (1 entries)" in said
    assert "fib rollback --channel dev" in said


@pytest.mark.parametrize("item", [BOTH, made("3", fused=True), made("3", dps=True, fused=True)])
def test_a_run_of_all_definitions_loses_none_whatever_it_decided(item: Made, caplog) -> None:
    publish(filled(), item)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_another_channel_and_one_whose_index_was_collected_lose_nothing_that_is_known(caplog) -> None:
    store = filled()
    publish(store, PART, "other")
    del store.objects[index_key(BOTH[0].digest)]
    save_definitions(store)
    publish(store, PART)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []

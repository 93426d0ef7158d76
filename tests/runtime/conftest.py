"""One thread, as the index measured, and a fresh process state for every test."""

import logging

import pytest
import torch

from fib_core.runtime import index_client, notices, process
from tests.fakes.memory_store import MemoryStore
from tests.runtime.published import build, publish


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, tmp_path):
    for name in ("FIB_APPLY", "FIB_INDEX", "FIB_CHANNEL", "FIB_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FIB_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FIB_CACHE", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    process.reset()
    notices.forget()
    yield
    process.reset()
    torch.set_num_threads(threads)


@pytest.fixture
def serve(tmp_path):
    """Publish, pull and choose an index; returns it."""

    def chosen(made, builder=build):
        store = MemoryStore()
        publish(store, made)
        pulled = index_client.pull_from(store, "quick", tmp_path / "cache")
        process.use(pulled, builder)
        return pulled

    return chosen


@pytest.fixture
def warnings_of(caplog):
    """What the runtime said to whoever runs the server; nobody signs in these tests, and each of them hears so."""
    caplog.set_level(logging.WARNING, logger="fib")

    def said():
        messages = [record.message for record in caplog.records if record.name == "fib"]
        return [text for text in messages if not text.startswith("signatures are not checked")]

    return said

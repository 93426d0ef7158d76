"""fib pull and fib rollback: what they print, where they write, how they refuse."""

import json

import pytest
import typer
from typer.testing import CliRunner

from fib_core.adapters.directory_store import DirectoryStore
from fib_core.errors import ContractError, ObjectMissing
from fib_core.runtime import index_client
from flows.cli import channel, pull
from tests.runtime.published import SCALE, SCALE_VALUE, index, modern, publish, solution


@pytest.fixture
def app():
    made = typer.Typer()
    pull.register(made)
    channel.register(made)
    return made


@pytest.fixture
def store(tmp_path, monkeypatch):
    for name in ("FIB_CACHE", "FIB_STORE", "FIB_CHANNEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FIB_HOME", str(tmp_path))
    return DirectoryStore(tmp_path / "store")


def _index(note="1"):
    return index((SCALE, [((2, 4), solution(SCALE, SCALE_VALUE)), ((5, 8), None)]), note=note)


def _json(app, *arguments):
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_pull_takes_the_home_store_and_prints_only_json(app, store, tmp_path):
    digest = publish(store, _index())
    found = _json(app, "pull")
    assert found["index_digest"] == digest
    assert found["entries"] == {"solution": 1, "incumbent": 1}
    assert (found["channel"], found["fetched"], found["cache"]) == ("quick", 3, str(tmp_path / "cache"))
    assert index_client.load().index_digest == digest


def test_pull_follows_the_named_store_and_channel(app, store, tmp_path):
    publish(store, _index())
    other = DirectoryStore(tmp_path / "other")
    digest = publish(other, _index("2"), channel="nightly")
    found = _json(app, "pull", "--from", other.url, "--channel", "nightly")
    assert (found["index_digest"], found["source"]) == (digest, other.url)


def test_pull_says_in_words_what_came(app, store):
    publish(store, _index())
    text = CliRunner().invoke(app, ["pull"], catch_exceptions=False).stdout
    assert "1 definitions; 1 entries with a chosen solution, 1 that keep the incumbent" in text


def test_pull_says_which_entries_are_stale_here_and_why(app, store):
    publish(store, modern(_index(), library_versions={"torch": "1.0"}))
    found = _json(app, "pull")
    assert found["entries"] == {"solution": 1, "incumbent": 1}
    (stale,) = found["stale"]
    assert (stale["definition"], stale["key"]) == ("scale_h4", "rows=4")
    assert "torch 1.0" in stale["reasons"][0]
    text = CliRunner().invoke(app, ["pull"], catch_exceptions=False).stdout
    assert "stale here: scale_h4 [rows=4]: measured with torch 1.0" in text


def test_pull_of_an_index_that_holds_here_names_nothing_stale(app, store):
    publish(store, modern(_index()))
    assert _json(app, "pull")["stale"] == []


def test_pull_of_a_channel_that_is_not_there_is_an_expected_error(app, store):
    with pytest.raises(ObjectMissing, match="no channel 'stable'"):
        CliRunner().invoke(app, ["pull", "--channel", "stable"], catch_exceptions=False)


def test_rollback_points_at_the_index_before_and_a_pull_follows(app, store):
    first, second = publish(store, _index("1")), publish(store, _index("2"))
    moved = _json(app, "rollback")
    assert (moved["index_digest"], moved["previous"]) == (first, second)
    assert _json(app, "pull")["index_digest"] == first


def test_rollback_without_a_past_changes_nothing(app, store):
    digest = publish(store, _index())
    with pytest.raises(ContractError, match="nothing to go back to"):
        CliRunner().invoke(app, ["rollback"], catch_exceptions=False)
    assert index_client.read_pointer(store, "quick").index_digest == digest


def test_rollback_refuses_an_index_that_is_not_whole(app, store):
    publish(store, _index("1"))
    with pytest.raises(ObjectMissing):
        CliRunner().invoke(app, ["rollback", "--to", "sha256:" + "0" * 64], catch_exceptions=False)

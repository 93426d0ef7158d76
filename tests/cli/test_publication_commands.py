"""fib channel, history, rollback, promote, diff, gc, keys: what they print, what they move, how they refuse."""

import json
import logging
import os
import stat

import pytest
import typer
from typer.testing import CliRunner

from fib_core.adapters import key_files
from fib_core.adapters.directory_store import DirectoryStore
from fib_core.errors import ContractError, ObjectMissing, StoreRefused
from fib_core.runtime import index_client
from flows.cli import build_app, channel, diff, gc, keys, promote, pull
from tests.publish.material import OTHER, SECRET, SIGNER, made, put, terms, whole

FULL = made("full", profile="full")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch, tmp_path):
    for name in ("SIGNING_KEY", "SIGNING_KEY_FILE", "TRUSTED_KEYS", "CACHE", "STORE", "CHANNEL"):
        monkeypatch.delenv(f"FIB_{name}", raising=False)
    monkeypatch.setenv("FIB_HOME", str(tmp_path))
    key_files.release_signing_key()
    yield
    key_files.release_signing_key()


@pytest.fixture
def app():
    made_app = typer.Typer()
    for group in (channel, promote, diff, gc, keys, pull):
        group.register(made_app)
    return made_app


@pytest.fixture
def store(tmp_path):
    return DirectoryStore(tmp_path / "store")


def said(app, *arguments):
    result = CliRunner().invoke(app, [str(item) for item in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(app, *arguments):
    return json.loads(said(app, *arguments, "--json"))


def test_every_command_is_there_and_explains_itself():
    names = {command.name or command.callback.__name__ for command in build_app().registered_commands}
    groups = {group.name for group in build_app().registered_groups}
    assert {"channel", "history", "rollback", "promote", "diff", "gc", "pull"} <= names
    assert "keys" in groups
    for command in ("channel", "history", "rollback", "promote", "diff", "gc"):
        assert "Usage" in said(build_app(), command, "--help")


def test_channels_and_their_histories_are_listed(app, store):
    put(store, made("1"), under=terms(0))
    put(store, made("2"), under=terms(1))
    put(store, made("3"), "nightly", under=terms(2, signer=None))
    listed = {row["channel"]: row for row in answer(app, "channel")["channels"]}
    assert (listed["dev"]["number"], listed["dev"]["signed_by"]) == (2, [SIGNER.public.key_id])
    assert listed["nightly"]["signed_by"] == []
    moves = answer(app, "history", "dev")["moves"]
    assert [row["index_digest"] for row in moves] == [made("2")[0].digest, made("1")[0].digest]
    assert all(row["index_kept"] for row in moves)
    text = said(app, "history", "dev")
    assert text.splitlines()[0].split()[0] == "2"
    assert f"signed by {SIGNER.public.key_id}" in text
    assert "not signed" in said(app, "channel")


def test_a_store_without_channels_says_so_and_a_missing_channel_is_an_error(app):
    assert "no channel" in said(app, "channel")
    with pytest.raises(ObjectMissing, match="no channel 'dev'"):
        said(app, "history", "dev")


def test_promote_moves_and_stable_refuses_quick(app, store):
    put(store, made("1"), under=terms(signer=None))
    with pytest.raises(ContractError, match="stable takes no index of the profile quick"):
        said(app, "promote", "--from", "dev", "--to", "stable")
    put(store, FULL, under=terms(1, signer=None))
    moved = answer(app, "promote", "--from", "dev", "--to", "stable")
    assert (moved["index_digest"], moved["channel"], moved["action"]) == (FULL[0].digest, "stable", "promote")
    assert answer(app, "promote", "--from", "dev", "--to", "stable") == moved
    assert f"stable names {FULL[0].digest}" in said(app, "promote", "--from", "dev", "--to", "stable")
    assert answer(app, "pull", "--channel", "stable")["index_digest"] == FULL[0].digest


def test_a_release_engineer_vouches_with_a_key_and_consumers_follow_only_that(app, store, monkeypatch, tmp_path):
    put(store, FULL, under=terms(signer=None))
    key = tmp_path / "keys" / "release"
    public = answer(app, "keys", "new", key)["public"]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    monkeypatch.setenv("FIB_SIGNING_KEY_FILE", str(key))
    monkeypatch.setenv("FIB_TRUSTED_KEYS", public)
    with pytest.raises(ContractError, match="--sign"):
        said(app, "promote", "--from", "dev", "--to", "stable")
    answer(app, "promote", "--from", "dev", "--to", "stable", "--sign")
    monkeypatch.delenv("FIB_SIGNING_KEY_FILE")
    pulled = answer(app, "pull", "--channel", "stable")
    assert (pulled["index_digest"], public) == (FULL[0].digest, answer(app, "keys", "show")["trusts"][0])
    assert pulled["signed_by"] in said(app, "pull", "--channel", "stable")
    assert index_client.load(channel="stable").signed_by == pulled["signed_by"]
    with pytest.raises(StoreRefused, match="no valid signature"):
        said(app, "pull", "--channel", "dev")
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(OTHER.public))
    with pytest.raises(StoreRefused, match="no valid signature"):
        index_client.load(channel="stable")


def test_an_unchecked_pull_says_so_in_words_and_json(app, store, caplog):
    caplog.set_level(logging.WARNING, logger="fib")
    put(store, made(), under=terms(signer=None))
    assert answer(app, "pull", "--channel", "dev")["signed_by"] is None
    assert "signatures were not checked" in said(app, "pull", "--channel", "dev")


def test_rollback_is_signed_and_proved_like_a_publication(app, store, monkeypatch):
    put(store, made("1"), under=terms(0))
    put(store, made("2"), under=terms(1))
    with pytest.raises(ContractError, match="no signing key is set"):
        said(app, "rollback", "--channel", "dev")
    monkeypatch.setenv("FIB_SIGNING_KEY", SECRET)
    moved = answer(app, "rollback", "--channel", "dev")
    assert (moved["index_digest"], moved["action"]) == (made("1")[0].digest, "rollback")
    assert whole(store, "dev").number == 3
    assert answer(app, "rollback", "--channel", "dev", "--to", made("2")[0].digest)["number"] == 4


def test_a_damaged_channel_is_one_sentence_and_does_not_hide_the_others(app, store, tmp_path):
    for hour, note in enumerate("12"):
        put(store, made(note), under=terms(hour))
    put(store, made("3"), "nightly")
    lost = tmp_path / "store/channels/dev.json"
    sound = lost.read_bytes()
    lost.write_bytes(sound[:40])
    result = CliRunner().invoke(app, ["channel", "--json"])
    rows = {row["channel"]: row for row in json.loads(result.stdout)["channels"]}
    assert (result.exit_code, rows["nightly"]["number"]) == (1, 1)
    assert "is no channel pointer: invalid JSON" in rows["dev"]["damaged"]
    text = CliRunner().invoke(app, ["channel"])
    assert (text.exit_code, len(text.stdout.splitlines())) == (1, 2)
    assert f"dev: damaged: {rows['dev']['damaged']}" in text.stdout
    with pytest.raises(StoreRefused) as refused:
        said(app, "history", "dev")
    assert str(refused.value) == rows["dev"]["damaged"]
    lost.write_bytes(sound)
    assert all("damaged" not in row for row in answer(app, "channel")["channels"]), "control: exit code 0, as before"


def test_another_key_continues_a_channel_only_with_new_signer(app, store, monkeypatch):
    for hour, note in enumerate("12"):
        put(store, made(note), under=terms(hour, OTHER))
    put(store, made("3"), "nightly", terms(2))
    monkeypatch.setenv("FIB_SIGNING_KEY", SECRET)
    for command in (["rollback", "--channel", "dev", "--sign"], ["promote", "--from", "nightly", "--to", "dev"]):
        with pytest.raises(ContractError, match=f"signed by {OTHER.public.key_id}, not by the key here.*--new-signer"):
            said(app, *command)
    assert answer(app, "rollback", "--channel", "dev", "--sign", "--new-signer")["number"] == 3
    assert answer(app, "promote", "--from", "nightly", "--to", "dev")["number"] == 4, "announced once"


def test_diff_takes_channels_digests_and_files(app, store, tmp_path):
    put(store, made("1"))
    put(store, made("2", dps=True, fused=True), "nightly")
    path = tmp_path / "old.json"
    path.write_text(made("1")[0].model_dump_json())
    found = answer(app, "diff", "dev", "nightly")
    assert found["counts"] == {
        "old": 1, "new": 2, "added": 1, "removed": 0, "winner": 1, "guard": 0, "ratio": 0, "evidence": 0,
        "unchanged": 0, "stale": 0,
    }  # fmt: skip
    assert answer(app, "diff", path, made("2", dps=True, fused=True)[0].digest) == found
    text = said(app, "diff", "dev", "nightly")
    assert "winner: scale_h4 rows=4: " in text
    assert "1.500 [1.400, 1.600] (rows 2..4)" in text
    assert "added: fused_add_scale_h4 rows=4: nothing -> " in text
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ContractError, match=r"no dispatch index: snapshot_digest: field required; .*; and . more$"):
        said(app, "diff", tmp_path / "bad.json", "dev")
    for name in ("sha256:00", "/nope.json"):
        with pytest.raises(ContractError, match=f"'{name}' is no index: neither sha256: with 64 hex digits"):
            said(app, "diff", name, "dev")
    with pytest.raises(ObjectMissing, match="no channel 'none'"):
        said(app, "diff", "none", "dev")


def test_gc_changes_nothing_unless_told_and_counts_every_key(app, store, tmp_path):
    put(store, made("1"))
    store.put_once("solutions/" + "0" * 64 + ".json", b"orphan")
    before = sorted(store.keys(""))
    found = answer(app, "gc")
    assert (found["dry_run"], found["marked"]) == (True, ["solutions/" + "0" * 64 + ".json"])
    assert sorted(store.keys("")) == before
    assert "nothing was changed; add --delete" in said(app, "gc")
    assert "1 marked now" in said(app, "gc", "--delete")
    assert answer(app, "gc", "--delete")["waiting"] == found["marked"]
    assert store.get(found["marked"][0]).body == b"orphan", "the grace period is not over"
    result = CliRunner().invoke(app, ["gc", "--grace-hours", "0"])
    assert result.exit_code == 2


def test_keys_are_shown_by_their_public_half_only(app, tmp_path, monkeypatch):
    assert "signatures are not checked" in said(app, "keys", "show")
    path = tmp_path / "k"
    text = said(app, "keys", "new", path)
    body = path.read_text().splitlines()[1]
    assert body not in text
    with pytest.raises(ContractError, match="never overwritten"):
        said(app, "keys", "new", path)
    monkeypatch.setenv("FIB_SIGNING_KEY", SECRET)
    shown = said(app, "keys", "show") + json.dumps(answer(app, "keys", "show"))
    assert str(SIGNER.public) in shown
    assert SECRET not in shown
    assert "FIB_SIGNING_KEY" not in os.environ

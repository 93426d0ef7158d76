"""What a consumer accepts: with trusted keys nothing unsigned, old or foreign, at pull and from the cache."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fib_core.errors import ContractError, StoreRefused
from fib_core.publication import history, signing
from fib_core.runtime import index_client, trust
from schemas.canonical import canonical_bytes
from tests.publish.material import OTHER, SIGNER, at, made, put, terms
from tests.runtime.published import SCALE, SCALE_VALUE, index, solution
from tests.runtime.published import publish as publish_unsigned

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def strict(monkeypatch):
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(SIGNER.public))


def pull(store, cache, channel="dev"):
    return index_client.pull_from(store, channel, cache)


def overwrite(store, channel, body):
    store.objects[history.channel_key(channel)] = body


@pytest.mark.usefixtures("strict")
def test_a_signed_index_is_followed_and_served_from_the_cache(store, tmp_path):
    put(store, made())
    assert pull(store, tmp_path).signed_by == SIGNER.public.key_id
    assert index_client.load(tmp_path).signed_by == SIGNER.public.key_id
    assert index_client.load(tmp_path, index_digest=made()[0].digest).signed_by == SIGNER.public.key_id
    assert index_client.read_channel(store, "dev").signed_by == SIGNER.public.key_id


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("signer", [None, OTHER])
def test_an_index_that_nobody_trusted_signed_is_refused_and_the_one_before_stays(store, tmp_path, signer):
    put(store, made("1"))
    pull(store, tmp_path)
    other = type(store)()
    put(other, made("2"), under=terms(1, signer))
    with pytest.raises(StoreRefused, match=rf"refused: it has no valid signature by a key .*{SIGNER.public.key_id}"):
        pull(other, tmp_path)
    with pytest.raises(StoreRefused, match="no valid signature"):
        index_client.read_channel(other, "dev")
    assert index_client.load(tmp_path).index_digest == made("1")[0].digest


def test_an_index_pulled_unchecked_is_refused_from_the_cache_once_keys_are_configured(store, tmp_path, monkeypatch):
    put(store, made(), under=terms(signer=None))
    pull(store, tmp_path)
    assert index_client.load(tmp_path).signed_by is None
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(SIGNER.public))
    with pytest.raises(StoreRefused, match="no valid signature"):
        index_client.load(tmp_path)
    with pytest.raises(StoreRefused, match="no valid signature"):
        index_client.load(tmp_path, index_digest=made()[0].digest)


def test_a_cache_of_the_version_before_says_pull_again(store, tmp_path, monkeypatch):
    put(store, made())
    pull(store, tmp_path)
    for name in ("current.json", "channels/dev.json"):
        where = json.loads((tmp_path / name).read_text())
        (tmp_path / name).write_text(json.dumps({k: v for k, v in where.items() if k not in ("pointer", "number")}))
    assert index_client.load(tmp_path).channel == "dev"
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(SIGNER.public))
    with pytest.raises(StoreRefused, match="pull` again"):
        index_client.load(tmp_path)
    pull(store, tmp_path)
    assert index_client.load(tmp_path).signed_by == SIGNER.public.key_id


@pytest.mark.usefixtures("strict")
def test_a_removed_key_is_no_longer_believed_from_the_cache(store, tmp_path, monkeypatch):
    put(store, made())
    pull(store, tmp_path)
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(OTHER.public))
    with pytest.raises(StoreRefused, match="no valid signature"):
        index_client.load(tmp_path)


@pytest.mark.usefixtures("strict")
def test_a_signed_index_under_a_pointer_that_nobody_signed_is_refused(store, tmp_path):
    old = put(store, made("1"))
    put(store, made("2"), under=terms(1))
    pull(store, tmp_path)
    forged = old.model_copy(update={"published_at": at(9), "number": 9})
    overwrite(store, "dev", canonical_bytes(forged.model_dump(mode="json")))
    with pytest.raises(StoreRefused, match="pointer of channel dev is refused"):
        pull(store, tmp_path)


@pytest.mark.usefixtures("strict")
def test_an_old_signed_pointer_that_was_put_back_is_refused_by_whoever_saw_a_newer_one(store, tmp_path):
    put(store, made("1"))
    before = store.objects[history.channel_key("dev")]
    put(store, made("2"), under=terms(1))
    pull(store, tmp_path / "saw")
    overwrite(store, "dev", before)
    with pytest.raises(StoreRefused, match="from move 2 back to move 1"):
        pull(store, tmp_path / "saw")
    # What signatures alone cannot tell, said in the decision: who never saw move 2 believes move 1.
    assert pull(store, tmp_path / "new").index_digest == made("1")[0].digest


@pytest.mark.usefixtures("strict")
def test_a_second_history_with_the_same_number_is_refused(store, tmp_path):
    put(store, made("1"))
    pull(store, tmp_path)
    fork = type(store)()
    put(fork, made("2"))
    store.objects = fork.objects
    with pytest.raises(StoreRefused, match="from move 1 back to move 1"):
        pull(store, tmp_path)


@pytest.mark.usefixtures("strict")
def test_a_signed_pointer_of_another_channel_is_refused(store, tmp_path):
    put(store, made(), "nightly")
    overwrite(store, "dev", store.objects[history.channel_key("nightly")])
    with pytest.raises(StoreRefused, match="signed for the channel 'nightly'"):
        pull(store, tmp_path)


@pytest.mark.usefixtures("strict")
def test_a_rollback_by_the_publisher_is_newer_and_is_followed(store, tmp_path):
    from fib_core.publish import rollback

    put(store, made("1"))
    put(store, made("2"), under=terms(1))
    pull(store, tmp_path)
    rollback(store, "dev", None, terms(2))
    assert pull(store, tmp_path).index_digest == made("1")[0].digest


@pytest.mark.usefixtures("strict")
def test_nothing_older_than_the_pinned_time_is_followed_or_served(store, tmp_path, monkeypatch):
    put(store, made(), under=terms(2))
    pull(store, tmp_path)
    monkeypatch.setenv("FIB_PUBLISHED_AFTER", at(2))
    assert pull(store, tmp_path).index_digest == index_client.load(tmp_path).index_digest
    monkeypatch.setenv("FIB_PUBLISHED_AFTER", at(3))
    for use in (lambda: pull(store, tmp_path / "new"), lambda: index_client.load(tmp_path)):
        with pytest.raises(StoreRefused, match="before FIB_PUBLISHED_AFTER"):
            use()
    monkeypatch.setenv("FIB_PUBLISHED_AFTER", "yesterday")
    with pytest.raises(ContractError, match="ISO 8601"):
        pull(store, tmp_path)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("victim", ["pointers", "signatures", "current.json"])
def test_a_cache_that_was_changed_is_refused(store, tmp_path, victim):
    put(store, made("1"))
    put(store, made("2"), under=terms(1))
    pull(store, tmp_path)
    if victim == "pointers":
        (path,) = (tmp_path / "pointers").iterdir()
        path.write_bytes(path.read_bytes().replace(b"2026", b"2036"))
    elif victim == "signatures":
        for path in (tmp_path / "signatures").rglob("*.json"):
            path.unlink()
    else:
        where = json.loads((tmp_path / victim).read_text())
        (tmp_path / victim).write_text(json.dumps(where | {"index_digest": where["previous"]}))
    with pytest.raises(StoreRefused):
        index_client.load(tmp_path)
    pull(store, tmp_path)
    assert index_client.load(tmp_path).index_digest == made("2")[0].digest


def test_without_keys_a_pull_works_and_says_once_that_nothing_is_checked(store, tmp_path, caplog):
    caplog.set_level(logging.WARNING, logger="fib")
    publish_unsigned(store, index((SCALE, [((2, 4), solution(SCALE, SCALE_VALUE))])), channel="dev")
    for _ in range(2):
        assert pull(store, tmp_path).signed_by is None
    assert [record.message for record in caplog.records] == [trust.NOT_CHECKED]


def test_with_keys_nothing_is_said(store, tmp_path, caplog, monkeypatch):
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(SIGNER.public))
    caplog.set_level(logging.WARNING, logger="fib")
    put(store, made())
    pull(store, tmp_path)
    assert not caplog.records


def test_a_mistyped_setting_stops_the_pull_and_a_server_serves_its_own_functions(store, tmp_path, monkeypatch):
    from fib_core.runtime import process

    put(store, made())
    monkeypatch.setenv("FIB_CACHE", str(tmp_path))
    pull(store, tmp_path)
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(tmp_path / "nowhere.pub"))
    with pytest.raises(ContractError, match="FIB_TRUSTED_KEYS"):
        pull(store, tmp_path)
    process.reset()
    try:
        assert process.apply("scale_h4", (1, 2), fallback=lambda x, gain: "own") == "own"
    finally:
        process.reset()


@pytest.mark.parametrize("keys", ["", str(SIGNER.public)])
def test_cryptography_is_imported_only_where_keys_are_configured(tmp_path, keys):
    from fib_core.adapters.directory_store import DirectoryStore

    store = DirectoryStore(tmp_path / "store")
    put(store, made())
    code = (
        "import sys, os\nimport fib_core.runtime as fib\nfib.pull(sys.argv[1], 'dev')\nfib.load(channel='dev')\n"
        "print('cryptography' in sys.modules)"
    )
    environment = os.environ | {"FIB_TRUSTED_KEYS": keys, "FIB_CACHE": str(tmp_path / "c"), "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-c", code, store.url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == str(bool(keys)), done.stderr
    assert ("not checked" in done.stderr) is not bool(keys)


def test_a_signature_is_read_before_anything_that_it_vouches_for(store, tmp_path, monkeypatch):
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(SIGNER.public))
    put(store, made(), under=terms(signer=None))
    asked = []

    class Watched(type(store)):
        def get(self, key):
            asked.append(key.partition("/")[0])
            return super().get(key)

    watched = Watched()
    watched.objects = store.objects
    with pytest.raises(StoreRefused):
        pull(watched, tmp_path)
    assert set(asked) == {"channels", signing.PREFIX}

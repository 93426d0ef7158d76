"""The private key of a publishing run is in no log, no artifact, no object and no candidate's environment."""

import base64
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fib_core.adapters.directory_store import DirectoryStore
from fib_core.errors import ContractError
from fib_core.publication import history, signing
from tasks.settings import Settings
from tests.flows import tiny_dataset
from tests.publish.material import OTHER, made, save_definitions, whole

CHECKOUT = Path(__file__).parents[2]
RAW = b"sentinel private key of 32 bytes"
SENTINEL = base64.b64encode(RAW).decode()
SIGNER = signing.signer_from(SENTINEL, "test")
HARMLESS = "a-harmless-variable-of-this-test"


def traces(body: bytes) -> list[str]:
    """In which of its forms the private key is in there."""
    form = serialization
    pem = Ed25519PrivateKey.from_private_bytes(RAW).private_bytes(
        form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
    )
    forms = {"raw": RAW, "base64": SENTINEL.encode(), "hex": RAW.hex().encode(), "pem": pem.splitlines()[1]}
    return [name for name, text in forms.items() if text in body]


def test_the_search_finds_a_key_in_every_form():
    assert traces(b"x" + RAW + SENTINEL.encode()) == ["raw", "base64"]
    assert traces(RAW.hex().encode()) == ["hex"]
    assert traces(b"nothing") == []


@pytest.fixture
def published_by_the_task(store, monkeypatch, caplog):
    """What the stage of a run writes and logs when the key comes by the environment."""
    from prefect.logging import disable_run_logger

    from tasks.publish import publish

    save_definitions(store)
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("FIB_SIGNING_KEY", SENTINEL)
    house = SimpleNamespace(settings=Settings(channel="dev"), store=store)

    def run(note="1"):
        with disable_run_logger():
            return publish.fn(house, *made(note), [])

    return run, house


def test_a_run_signs_what_it_publishes_and_shows_no_key(published_by_the_task, store, caplog):
    run, house = published_by_the_task
    assert run() is None
    assert history.current(store, "dev").number == 1
    whole(store, "dev", SIGNER)
    assert "FIB_SIGNING_KEY" not in os.environ
    everything = f"{store.objects!r} {caplog.text} {house!r} {house.settings.model_dump_json()}"
    assert traces(everything.encode()) == []


def test_a_refusal_shows_no_key_either(published_by_the_task, monkeypatch):
    run, _ = published_by_the_task
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(OTHER.public))
    with pytest.raises(ContractError) as caught:
        run()
    shown = f"{caught.value!r} {caught.value} {caught.getrepr(showlocals=True)}"
    assert SIGNER.public.key_id in shown, "control: the public half is named"
    assert traces(shown.encode()) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_whole_run_leaves_the_key_in_no_file_and_shows_it_to_no_candidate(tmp_path):
    dataset, home = tiny_dataset.write(tmp_path / "dataset", ("laborious", "direct")), tmp_path / "home"
    curious = tiny_dataset._solution("curious", "someone", "import os\n    raise RuntimeError(repr(dict(os.environ)))")
    place = dataset / f"solutions/someone/elementwise/{tiny_dataset.NAME}/curious.json"
    place.write_text(json.dumps(curious))
    environment = os.environ | {
        "FIB_HOME": str(home), "PYTHONPATH": str(CHECKOUT), "FIB_SIGNING_KEY": SENTINEL, "FIB_HARMLESS": HARMLESS,
    }  # fmt: skip
    command = [sys.executable, "-c", "from flows.cli import main; main()", "run", "--dataset", str(dataset), "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    pointer = history.current(DirectoryStore(home / "store"), "quick")
    assert history.signers(DirectoryStore(home / "store"), pointer.digest)
    bodies = {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    bodies |= {"stdout": done.stdout, "stderr": done.stderr}
    assert any(HARMLESS.encode() in body for body in bodies.values()), "control: the candidate did print what it saw"
    assert {name: traces(body) for name, body in bodies.items() if traces(body)} == {}

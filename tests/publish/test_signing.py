"""Keys and signatures: who vouched for what, and that a private key is seen nowhere."""

import base64
import os
import pickle
import stat
import subprocess
import sys
import traceback

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from hypothesis import given
from hypothesis import strategies as st

from fib_core.adapters import key_files
from fib_core.errors import ContractError, ObjectMissing
from fib_core.publication import history, signing
from schemas.canonical import canonical_bytes, digest_of
from schemas.publication import Signature
from tests.fakes.memory_store import MemoryStore
from tests.publish.material import OTHER, SECRET, SIGNER

DIGEST = digest_of("something")
# RFC 8032, section 7.1, test 1.
RFC_SECRET = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
RFC_PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def signed(domain=signing.INDEX, digest=DIGEST, signer=SIGNER):
    store = MemoryStore()
    history.put_signature(store, signer.sign(domain, digest))
    return store


def vouched(store, keys=(SIGNER.public,), domain=signing.INDEX, digest=DIGEST):
    return signing.valid_signature(lambda key: store.get(key).body, domain, digest, keys)


def test_a_key_from_the_standard_has_the_public_half_that_the_standard_says():
    assert signing.signer_from(base64.b64encode(RFC_SECRET).decode(), "t").public.raw.hex() == RFC_PUBLIC


def test_a_signature_counts_for_its_key_its_domain_and_its_digest_only():
    store = signed()
    assert vouched(store).key_id == SIGNER.public.key_id
    assert vouched(store, (OTHER.public, SIGNER.public)).key_id == SIGNER.public.key_id
    assert vouched(store, (OTHER.public,)) is None
    assert vouched(store, ()) is None
    assert vouched(store, domain=signing.POINTER) is None
    assert vouched(store, digest=digest_of("else")) is None


def test_a_signature_copied_to_another_object_or_another_key_is_worth_nothing():
    store = signed()
    ((_, body),) = store.objects.items()
    other = digest_of("else")
    store.objects[signing.signature_key(other, SIGNER.public.key_id)] = body
    store.objects[signing.signature_key(DIGEST, OTHER.public.key_id)] = body
    assert vouched(store, digest=other) is None
    assert vouched(store, (OTHER.public,)) is None
    assert vouched(store) is not None


@given(place=st.integers(0, 63), bit=st.integers(0, 7))
def test_a_signature_with_one_bit_changed_is_not_valid(place, bit):
    store = signed()
    ((key, body),) = store.objects.items()
    record = Signature.model_validate_json(body)
    raw = bytearray(base64.b64decode(record.signature))
    raw[place] ^= 1 << bit
    changed = record.model_copy(update={"signature": base64.b64encode(bytes(raw)).decode()})
    store.objects[key] = canonical_bytes(changed.model_dump(mode="json"))
    assert vouched(store) is None


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"\xff", b'{"signature": "!"}'])
def test_a_signature_that_cannot_be_read_counts_as_absent_and_hides_no_valid_one(body):
    store = signed()
    store.objects[signing.signature_key(DIGEST, OTHER.public.key_id)] = body
    assert vouched(store, (OTHER.public,)) is None
    assert vouched(store, (OTHER.public, SIGNER.public)).key_id == SIGNER.public.key_id


def test_signing_again_writes_the_same_bytes():
    store = signed()
    before = dict(store.objects)
    history.put_signature(store, SIGNER.sign(signing.INDEX, DIGEST))
    assert store.objects == before


def test_anybody_can_check_a_signature_without_this_project():
    record = SIGNER.sign(signing.INDEX, DIGEST)
    body = b'{"digest":"%s","domain":"fib dispatch index, version 1"}' % DIGEST.encode()
    Ed25519PublicKey.from_public_bytes(SIGNER.public.raw).verify(base64.b64decode(record.signature), body)


def test_new_keys_are_files_that_sign_and_that_only_their_owner_reads(tmp_path, monkeypatch):
    path = tmp_path / "keys" / "release"
    public = key_files.write_new_keys(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    monkeypatch.setenv("FIB_SIGNING_KEY_FILE", str(path))
    monkeypatch.setenv("FIB_TRUSTED_KEYS", str(path) + ".pub")
    assert key_files.signer().public == public
    assert key_files.trusted_keys() == (public,)
    assert vouched(signed(signer=key_files.signer()), key_files.trusted_keys()) is not None
    assert base64.b64encode(public.raw).decode() not in path.read_text(), "control: the two files differ"


def test_an_existing_key_is_never_overwritten(tmp_path):
    path = tmp_path / "release"
    key_files.write_new_keys(path)
    before = path.read_bytes()
    with pytest.raises(ContractError, match="never overwritten"):
        key_files.write_new_keys(path)
    (tmp_path / "release.pub").unlink()
    with pytest.raises(ContractError, match="never overwritten"):
        key_files.write_new_keys(path)
    assert path.read_bytes() == before


def test_trusted_keys_come_from_a_file_a_folder_or_the_variable_itself(tmp_path, monkeypatch):
    (tmp_path / "a.pub").write_text(f"# ours\n{SIGNER.public}  # since 2026\n\n")
    (tmp_path / "b.pub").write_text(f"{OTHER.public}\n{SIGNER.public}\n")
    (tmp_path / "README").write_text("not a key")
    for value, expected in [
        (str(tmp_path / "a.pub"), (SIGNER.public,)),
        (str(tmp_path), (SIGNER.public, OTHER.public)),
        (str(SIGNER.public), (SIGNER.public,)),
        (f"{OTHER.public}, {SIGNER.public}", (OTHER.public, SIGNER.public)),
        ("", ()),
        ("  ", ()),
    ]:
        monkeypatch.setenv("FIB_TRUSTED_KEYS", value)
        assert key_files.trusted_keys() == expected, value


@pytest.mark.parametrize("value", ["nowhere.pub", "{}", "ed25519:abc", "{}/empty.pub", "{}/bad.pub"])
def test_a_setting_that_names_no_usable_key_is_an_error_and_never_means_no_checks(tmp_path, monkeypatch, value):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "empty.pub").write_text("# nothing\n")
    (tmp_path / "empty" / "bad.pub").write_text("ssh-ed25519 AAAA\n")
    folder = tmp_path / ("empty" if "/" in value else "none")
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("FIB_TRUSTED_KEYS", value.format(folder))
    with pytest.raises(ContractError, match="FIB_TRUSTED_KEYS"):
        key_files.trusted_keys()


def pem_of(private) -> str:
    form = serialization
    return private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()).decode()


def test_a_key_of_another_tool_in_pem_works_too(monkeypatch):
    pem = pem_of(Ed25519PrivateKey.from_private_bytes(base64.b64decode(SECRET)))
    monkeypatch.setenv("FIB_SIGNING_KEY", pem)
    assert key_files.signer().public == SIGNER.public


def test_a_key_given_twice_is_an_error(tmp_path, monkeypatch):
    key_files.write_new_keys(tmp_path / "k")
    monkeypatch.setenv("FIB_SIGNING_KEY_FILE", str(tmp_path / "k"))
    assert key_files.signer() is not None
    monkeypatch.setenv("FIB_SIGNING_KEY", SECRET)
    with pytest.raises(ContractError, match="unset one"):
        key_files.signer()


def test_without_a_key_there_is_no_signer():
    assert key_files.signer() is None


SENTINEL = base64.b64encode(b"sentinel sentinel sentinel 32 by").decode()


@pytest.mark.parametrize(
    "text",
    [SENTINEL + "x", SENTINEL[:-4], "-----BEGIN PRIVATE KEY-----\n" + SENTINEL + "\n-----END PRIVATE KEY-----\n",
     pem_of(generate_private_key(65537, 2048)), SENTINEL + "\xff"],
)  # fmt: skip
@pytest.mark.parametrize("by", ["environment", "file"])
def test_a_key_that_cannot_be_read_is_named_by_its_place_and_never_quoted(text, by, tmp_path, monkeypatch):
    if by == "file":
        (tmp_path / "k").write_text(text, encoding="latin-1")
        monkeypatch.setenv("FIB_SIGNING_KEY_FILE", str(tmp_path / "k"))
    else:
        monkeypatch.setenv("FIB_SIGNING_KEY", text)
    with pytest.raises(ContractError, match="FIB_SIGNING_KEY") as caught:
        key_files.signer()
    whole = "".join(traceback.format_exception(caught.value))
    assert "sentinel" not in whole.lower().replace("sentinel =", "")
    for line in text.splitlines():
        assert len(line) < 24 or line not in whole


def test_a_signer_shows_its_public_half_and_leaves_its_process_in_no_form():
    signer = signing.signer_from(SENTINEL, "test")
    shown = f"{signer!r} {signer} {[signer]} {signer.public}"
    assert SENTINEL not in shown
    assert signer.public.key_id in shown
    with pytest.raises(TypeError, match="leaves its process"):
        pickle.dumps(signer)
    assert not hasattr(signer, "__dict__")


def test_a_key_is_taken_out_of_the_environment_before_children_can_inherit_it(monkeypatch):
    monkeypatch.setenv("FIB_SIGNING_KEY", SECRET)
    child = [sys.executable, "-c", "import os; print(os.environ.get('FIB_SIGNING_KEY', 'nothing'))"]
    assert subprocess.run(child, capture_output=True, text=True).stdout.strip() == SECRET, "control: it is inherited"
    key_files.hold_signing_key()
    key_files.hold_signing_key()
    assert "FIB_SIGNING_KEY" not in os.environ
    assert subprocess.run(child, capture_output=True, text=True).stdout.strip() == "nothing"
    assert key_files.signer().public == SIGNER.public


def test_a_missing_signature_is_asked_for_once_and_other_failures_are_not_hidden():
    asked = []

    def get(key):
        asked.append(key)
        raise ObjectMissing(key)

    assert signing.valid_signature(get, signing.INDEX, DIGEST, [SIGNER.public, OTHER.public]) is None
    assert len(asked) == 2

"""Canonical bytes: one value, one digest, on every machine and in every key order."""

import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.canonical import canonical_bytes, digest_of, digest_of_bytes, is_digest, short

SAFE = 2**53 - 1
# RFC 8785 writes whole floats as integers and refuses integers that a double cannot hold exactly.
floats = st.floats().filter(lambda value: not (math.isfinite(value) and value.is_integer() and abs(value) > SAFE))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-SAFE, SAFE) | floats | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), values, max_size=5))
def test_the_order_of_keys_changes_no_digest(body: dict) -> None:
    assert digest_of(dict(reversed(body.items()))) == digest_of(body)


@given(values)
def test_canonical_bytes_are_strict_json_that_comes_back_to_the_same_digest(value) -> None:
    body = canonical_bytes(value)
    assert digest_of(json.loads(body, parse_constant=pytest.fail)) == digest_of(value) == digest_of_bytes(body)


def test_non_finite_floats_are_words() -> None:
    assert canonical_bytes([math.nan, math.inf, -math.inf]) == b'["NaN","Infinity","-Infinity"]'


def test_a_known_digest_never_changes() -> None:
    body = {"b": [1, 2.5, None, True], "a": "é"}
    assert canonical_bytes(body) == '{"a":"é","b":[1,2.5,null,true]}'.encode()
    assert digest_of(body) == "sha256:" + hashlib.sha256(canonical_bytes(body)).hexdigest()


def test_a_digest_is_told_from_a_label() -> None:
    digest = digest_of({})
    assert is_digest(digest)
    assert not is_digest(digest[:-1])
    assert not is_digest("sha256:" + "G" * 64)
    assert short(digest) == digest[7:19]

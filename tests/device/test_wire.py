"""The two sides of the wire agree, and nobody without the key can answer for the driver."""

import re
import socket
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.device import driver, wire
from fib_core.device.arena import Arena, ArenaForged
from fib_core.device.driver_build import ensure_driver

NATIVE = Path(driver.__file__).parent / "native"
# SipHash-2-4 of 0, 1, ... under the key 00 01 ... 0f: the paper's appendix A and its reference vectors.
VECTORS = {0: 0x726FDB47DD0E0E31, 1: 0x74F839C593DC67FD, 15: 0xA129CA6149BE45E5}


@pytest.fixture(scope="module", autouse=True)
def _driver(tmp_path_factory: pytest.TempPathFactory) -> None:
    driver.load(ensure_driver(tmp_path_factory.mktemp("driver")))


@pytest.mark.parametrize("size", VECTORS)
def test_the_tag_is_siphash(size: int) -> None:
    assert driver.tag(bytes(range(16)), bytes(range(size))) == VECTORS[size]


def test_both_sides_lay_their_records_out_alike() -> None:
    """Sizes of the packed C++ records, counted from their declarations."""
    width = {"uint8_t": 1, "uint32_t": 4, "uint64_t": 8, "int64_t": 8, "int32_t": 4, "char": 1}
    text = re.sub(r"//.*", "", (NATIVE / "wire.h").read_text())
    names = {"kMaxDims": wire.DIMS_MAX, "kDetailBytes": wire.DETAIL_BYTES, "kHandleBytes": wire.HANDLE_BYTES}
    found = {}
    for name, body in re.findall(r"struct (\w+) \{(.*?)\};", text, re.DOTALL):
        total = 0
        for kind, fields in re.findall(r"(\w+) ([\w\[\], ]+);", body):
            for field in fields.split(","):
                count = re.search(r"\[(\w+)\]", field)
                total += width[kind] * (names[count[1]] if count else 1)
        found[name] = total
    assert found == wire.layout_bytes()


def test_the_limits_are_the_same_on_both_sides() -> None:
    text = (NATIVE / "wire.h").read_text()
    assert f"kVersion = {wire.VERSION};" in text
    assert f"kMaxTensors = {wire.TENSORS_MAX};" in text


def _answer(payload: bytes = b"") -> bytes:
    return struct.pack("<4I5Q4I3q2i256s", 4, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 0, len(payload), *[0] * 5, b"") + payload


@given(st.binary(max_size=600))
def test_whatever_a_contestant_writes_is_no_answer(junk: bytes) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        arena = Arena(ours.detach(), 1)
        theirs.recv(16)
        theirs.send(junk + b"\0" * 8)
        with pytest.raises(ArenaForged):
            arena.ask(wire.end(), 1.0)
        arena.close()


def test_an_answer_counts_once_and_only_with_the_key() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        arena = Arena(ours.detach(), 1)
        key = theirs.recv(16)
        body = _answer(b"text")
        packet = body + struct.pack("<Q", driver.tag(key, body + struct.pack("<Q", 0)))
        theirs.send(packet)
        assert arena.ask(wire.end(), 1.0).answer.payload == b"text"
        theirs.send(packet)  # replayed: the count has moved on
        with pytest.raises(ArenaForged):
            arena.ask(wire.end(), 1.0)
        arena.close()

"""Indexes, keys and terms for the tests of publication, and what a careful reader asks of a channel."""

import base64
from datetime import UTC, datetime, timedelta

from fib_core import ledger
from fib_core.ports import ObjectStore
from fib_core.publication import history, signing
from fib_core.publish import Terms, publish
from fib_core.runtime.proof import prove
from fib_core.runtime.pulled import assemble
from schemas.base import Digest
from schemas.index import DispatchIndex
from schemas.publication import ChannelPointer
from schemas.solution import Solution
from tests.runtime.published import FUSED, FUSED_VALUE, SCALE, SCALE_DPS, SCALE_VALUE, index, solution

START = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = base64.b64encode(bytes(range(100, 132))).decode()
SIGNER = signing.signer_from(SECRET, "test")
OTHER = signing.signer_from(base64.b64encode(bytes(32)).decode(), "test")
Made = tuple[DispatchIndex, dict[Digest, Solution]]


def made(note: str = "1", profile: str = "quick", dps: bool = False, fused: bool = False) -> Made:
    """An index and its solutions; every ``note`` is another index, ``dps`` and ``fused`` choose its solutions."""
    chosen = solution(SCALE, SCALE_DPS, dps=True) if dps else solution(SCALE, SCALE_VALUE)
    parts = [(SCALE, [((2, 4), chosen)])] + ([(FUSED, [((2, 4), solution(FUSED, FUSED_VALUE))])] if fused else [])
    record, owned = index(*parts, note=note)
    return record.model_copy(update={"profile": profile}), {digest: item for digest, (_, item) in owned.items()}


def at(hours: float = 0.0) -> str:
    """A time of publication."""
    return (START + timedelta(hours=hours)).isoformat(timespec="seconds")


def terms(hours: float = 0.0, signer: signing.Signer | None = SIGNER, trusted: bool = False, proof=prove) -> Terms:
    return Terms(proof, at(hours), signer, (SIGNER.public,) if trusted else ())


def save_definitions(store: ObjectStore) -> None:
    """What a run stores long before it publishes."""
    for definition in (SCALE, FUSED):
        ledger.save(store, "definitions", definition)


def put(store: ObjectStore, item: Made, channel: str = "dev", under: Terms | None = None) -> ChannelPointer:
    save_definitions(store)
    return publish(store, *item, channel, under or terms())


def whole(store: ObjectStore, channel: str, signer: signing.Signer | None = SIGNER) -> ChannelPointer:
    """The pointer of a channel, after everything that it promises was read and verified."""
    pointer = history.current(store, channel)
    get = lambda key: store.get(key).body  # noqa: E731
    prove(get, pointer.index_digest)
    assemble(get, pointer.index_digest)
    if signer is not None:
        for domain, digest in ((signing.POINTER, pointer.digest), (signing.INDEX, pointer.index_digest)):
            assert signing.valid_signature(get, domain, digest, [signer.public]) is not None, domain
    numbers = [item.number for item in history.chain(store, pointer)]
    assert numbers == list(range(pointer.number, 0, -1)), numbers
    return pointer


def moves(store: ObjectStore, channel: str) -> list[Digest]:
    """Index digests of the history, oldest first."""
    return [item.index_digest for item in history.chain(store, history.current(store, channel))][::-1]

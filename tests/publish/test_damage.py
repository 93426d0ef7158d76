"""A pointer that cannot be read is one sentence with the way back, and the way back works."""

import json

import pytest

from fib_core.adapters.directory_store import DirectoryStore
from fib_core.errors import StoreRefused
from fib_core.publication import history
from fib_core.publication.damage import in_words
from schemas.index import DispatchIndex
from schemas.publication import ChannelPointer
from tests.fakes.memory_store import MemoryStore
from tests.publish.material import made, moves, put, terms, whole

BODIES = [b"", b"{", b"[1]", b"\xff\xfe", b'{"index_digest": 3}', b'{"schema_version": "2"}', b"null"]


@pytest.fixture
def store() -> MemoryStore:
    """Three moves of one channel, more of another."""
    found = MemoryStore()
    for hour, note in enumerate("123"):
        put(found, made(note), under=terms(hour))
    for hour, note in enumerate("45678"):
        put(found, made(note), "nightly", terms(hour))
    return found


@pytest.mark.parametrize("body", BODIES)
def test_a_damaged_pointer_is_one_line_that_names_the_newest_archived_one_of_its_channel(store, body: bytes) -> None:
    before = history.current(store, "dev").previous_pointer
    store.objects["channels/dev.json"] = body
    with pytest.raises(StoreRefused) as refused:
        history.look(store, "dev")
    words = str(refused.value)
    assert words.startswith("channels/dev.json in ")
    assert "\n" not in words
    assert "pydantic" not in words
    archived = history.pointer_key(before)
    assert f"the newest archived pointer is {archived} (move 2, index {made('2')[0].digest})" in words
    assert history.current(store, "nightly").number == 5, "control: the other channel is not touched"


def test_what_the_sentence_says_restores_the_channel(tmp_path) -> None:
    store = DirectoryStore(tmp_path)
    for hour, note in enumerate("123"):
        put(store, made(note), under=terms(hour))
    (tmp_path / "channels/dev.json").write_bytes(b"{")
    with pytest.raises(StoreRefused) as refused:
        put(store, made("3"), under=terms(3))
    where = str(refused.value).split("pointer is ")[1].split(" ")[0]
    (tmp_path / "channels/dev.json").write_bytes((tmp_path / where).read_bytes())
    assert whole(store, "dev").index_digest == made("2")[0].digest
    put(store, made("3"), under=terms(4))
    assert moves(store, "dev") == [made(note)[0].digest for note in "123"]


def test_an_archived_pointer_that_is_damaged_itself_is_not_offered(store) -> None:
    newest = history.pointer_key(history.current(store, "dev").previous_pointer)
    forged = json.loads(store.objects[newest]) | {"number": 9}
    store.objects[newest] = json.dumps(forged).encode()
    store.objects["channels/dev.json"] = b"{"
    with pytest.raises(StoreRefused, match=f"move 1, index {made('1')[0].digest}"):
        history.look(store, "dev")


def test_a_channel_without_a_past_has_nothing_to_restore() -> None:
    store = MemoryStore()
    put(store, made("1"))
    store.objects["channels/dev.json"] = b"{"
    with pytest.raises(StoreRefused, match="no pointer of this channel was archived"):
        history.look(store, "dev")


def test_problems_are_named_by_field_and_a_long_tail_is_counted() -> None:
    three = _error(ChannelPointer, b'{"schema_version": "2", "index_digest": "x", "previous": null}')
    assert [item.split(":")[0] for item in in_words(three).split("; ")] == [
        "schema_version", "index_digest", "published_at",
    ]  # fmt: skip
    assert in_words(_error(DispatchIndex, b"{}")).endswith("more")
    assert in_words(ValueError("first\nsecond")) == "first"
    assert in_words(ValueError()) == "ValueError"


def _error(record: type[ChannelPointer] | type[DispatchIndex], body: bytes) -> ValueError:
    with pytest.raises(ValueError) as caught:
        record.model_validate_json(body)
    return caught.value

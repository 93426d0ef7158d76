"""The promises of the ObjectStore port, kept alike by memory, a directory, and moto and SeaweedFS over HTTP."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fib_core.errors import ContractError, ObjectMissing, PublishConflict
from fib_core.ports import ObjectStore
from tests.fakes.memory_store import MemoryStore

RACERS = 16
HANDLES = 4  # racers share them four by four: a handle is thread-safe, and an S3 client takes 0.2 s to make
INCREMENTS = 2
BAD_KEYS = ["", "/", "/a", "a/", "a//b", "../a", "a/../b", ".", "a/.", ".tmp/x", "a/.probe/x", "a b", "é", "a\x00",
            "a\n", "x" * 600]  # fmt: skip


def winners_of(stores: list[ObjectStore], key: str) -> list[int]:
    """Who was told True when all put their own number under ``key`` at the same moment."""
    barrier = threading.Barrier(len(stores))

    def run(number: int) -> bool:
        barrier.wait()
        return stores[number].put_once(key, f"racer {number}".encode())

    with ThreadPoolExecutor(len(stores)) as pool:
        return [number for number, won in enumerate(pool.map(run, range(len(stores)))) if won]


def count_together(stores: list[ObjectStore], key: str) -> int:
    """What a counter ends at when every store increments it INCREMENTS times by compare-and-swap."""

    def run(store: ObjectStore) -> None:
        for _ in range(INCREMENTS):
            while not increment(store, key):
                time.sleep(0.001)

    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(run, stores))
    return int(stores[0].get(key).body)


def increment(store: ObjectStore, key: str) -> bool:
    try:
        now = store.get(key)
        value, etag = int(now.body), now.etag
    except ObjectMissing:
        value, etag = 0, None
    try:
        store.swap(key, str(value + 1).encode(), etag)
    except PublishConflict:
        return False
    return True


class CarelessStore(MemoryStore):
    """Looks, then writes, without atomic conditions. The first to look writes after the second has looked too."""

    def __init__(self) -> None:
        super().__init__()
        self._looks, self._looked = {"put": 0, "swap": 0}, threading.Condition()

    def _look_over(self, kind: str) -> None:
        with self._looked:
            self._looks[kind] += 1
            self._looked.notify_all()
            if self._looks[kind] == 1:
                assert self._looked.wait_for(lambda: self._looks[kind] > 1, timeout=60)

    def put_once(self, key: str, body: bytes) -> bool:
        absent = key not in self.objects
        self._look_over("put")
        return absent and (self.objects.__setitem__(key, body) or True)

    def swap(self, key: str, body: bytes, expected_etag: str | None) -> str:
        moved = (self.get(key).etag if key in self.objects else None) != expected_etag
        self._look_over("swap")
        if moved:
            raise PublishConflict(key)
        self.objects[key] = body
        return self.get(key).etag


def test_what_was_put_is_read_back_by_everybody(reopen: Callable[[], ObjectStore]) -> None:
    body = bytes(range(256)) * 1000
    assert reopen().put_once("blobs/ab12", body) is True
    assert reopen().get("blobs/ab12").body == body
    assert reopen().put_once("blobs/empty", b"") is True
    assert reopen().get("blobs/empty").body == b""


def test_a_second_put_is_told_so_and_the_old_bytes_stay(reopen: Callable[[], ObjectStore]) -> None:
    assert reopen().put_once("a/b.json", b"old") is True
    assert reopen().put_once("a/b.json", b"new") is False
    assert reopen().put_once("a/b.json", b"old") is False
    assert reopen().get("a/b.json").body == b"old"


def test_what_is_not_there_is_missing_even_where_other_keys_lie_below(store: ObjectStore) -> None:
    with pytest.raises(ObjectMissing, match="a/b"):
        store.get("a/b")
    store.put_once("a/b/c", b"1")
    with pytest.raises(ObjectMissing, match="a/b"):
        store.get("a/b")


def test_a_swap_needs_the_tag_that_is_there_now(reopen: Callable[[], ObjectStore]) -> None:
    store, key = reopen(), "channels/main.json"
    first = store.swap(key, b"1", None)
    assert reopen().get(key).etag == first
    second = reopen().swap(key, b"2", first)
    for stale in (first, None, '"00000000000000000000000000000000"'):
        with pytest.raises(PublishConflict, match=key):
            store.swap(key, b"never", stale)
    assert store.get(key).body == b"2"
    assert store.get(key).etag == second


def test_a_swap_of_an_absent_pointer_conflicts_and_creates_nothing(store: ObjectStore) -> None:
    with pytest.raises(PublishConflict):
        store.swap("channels/x.json", b"1", '"00000000000000000000000000000000"')
    assert list(store.keys("")) == []
    with pytest.raises(ObjectMissing):
        store.get("channels/x.json")


def test_a_pointer_born_by_put_once_can_be_swapped_but_not_created_again(store: ObjectStore) -> None:
    store.put_once("p", b"1")
    with pytest.raises(PublishConflict):
        store.swap("p", b"2", None)
    store.swap("p", b"3", store.get("p").etag)
    assert store.get("p").body == b"3"
    assert store.put_once("p", b"4") is False


def test_keys_come_in_lexical_order_under_exactly_their_prefix(
    store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fib_core.adapters.s3_store.PAGE_KEYS", 3)
    names = ["b/1", "b.json", "b/0/x", "b-1", "a", "ba/1", "b/10", "B/1", "b/2.json", "c/d/e/f"]
    for name in names:
        assert store.put_once(name, b"") is True
    for prefix in ("", "b", "b/", "b/1", "b/0/", "c/d", "c/d/e/f", "nothing", "b/1/", "z/"):
        assert list(store.keys(prefix)) == sorted(name for name in names if name.startswith(prefix)), prefix


@pytest.mark.parametrize("key", BAD_KEYS)
def test_a_key_that_could_leave_the_store_or_means_two_things_is_bad_data(store: ObjectStore, key: str) -> None:
    for use in (store.get, lambda k: store.put_once(k, b""), lambda k: store.swap(k, b"", None)):
        with pytest.raises(ContractError, match="bad store key"):
            use(key)
    if key:
        with pytest.raises(ContractError, match="bad store key"):
            list(store.keys(f"{key}/../"))


def test_of_sixteen_racing_writers_exactly_one_wins_and_its_bytes_stay(reopen: Callable[[], ObjectStore]) -> None:
    stores = [reopen() for _ in range(HANDLES)] * (RACERS // HANDLES)
    for attempt in range(2):
        key = f"race/{attempt}"
        (winner,) = winners_of(stores, key)
        assert stores[0].get(key).body == f"racer {winner}".encode()


def test_no_increment_is_lost_when_sixteen_writers_swap_one_pointer(reopen: Callable[[], ObjectStore]) -> None:
    assert count_together([reopen() for _ in range(HANDLES)] * (RACERS // HANDLES), "counter") == RACERS * INCREMENTS


def test_the_races_do_catch_a_store_that_looks_before_it_writes() -> None:
    careless = CarelessStore()
    assert len(winners_of([careless] * RACERS, "race")) > 1
    assert count_together([careless] * RACERS, "counter") < RACERS * INCREMENTS


def test_the_url_names_the_place_and_no_secret(store: ObjectStore) -> None:
    assert "://" in store.url
    assert "secret" not in store.url


def test_what_was_deleted_is_gone_for_everybody_and_its_neighbours_stay(reopen: Callable[[], ObjectStore]) -> None:
    for key in ("a/b", "a/b-c", "a/c"):
        reopen().put_once(key, b"1")
    reopen().delete("a/b")
    reopen().delete("a/b")
    reopen().delete("never/was")
    assert list(reopen().keys("")) == ["a/b-c", "a/c"]
    with pytest.raises(ObjectMissing):
        reopen().get("a/b")
    assert reopen().put_once("a/b", b"2") is True
    assert reopen().get("a/b").body == b"2"


def test_only_a_key_can_be_deleted(store: ObjectStore) -> None:
    store.put_once("a/b", b"1")
    store.delete("a")
    assert list(store.keys("")) == ["a/b"]
    with pytest.raises(ContractError, match="bad store key"):
        store.delete("../a")

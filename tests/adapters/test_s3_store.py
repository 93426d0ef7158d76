"""What only the S3 adapter promises: it believes no server blindly, loses no answer, and says what to do next."""

from collections.abc import Callable

import pytest

from fib_core.adapters.store_url import open_store
from fib_core.errors import DeviceError, ObjectMissing, PublishConflict, StoreRefused
from fib_core.ports import ObjectStore
from tests.adapters.conftest import BUCKET, S3Server
from tests.adapters.lying_proxy import LyingProxy

UseServer = Callable[..., str]


@pytest.fixture
def lied_to(liar: LyingProxy, use_server: UseServer) -> ObjectStore:
    return open_store(use_server(S3Server(liar.endpoint)))


@pytest.mark.parametrize(
    ("dropped", "named"),
    [
        ({"if-none-match"}, r"ignores If-None-Match: \*,"),
        ({"if-match"}, "ignores If-Match,"),
        ({"if-none-match", "if-match"}, r"ignores If-None-Match: \* and If-Match,"),
    ],
)
def test_a_server_that_ignores_a_condition_is_refused_by_name_before_anything_is_written(
    liar: LyingProxy, lied_to: ObjectStore, dropped: set[str], named: str
) -> None:
    liar.drop = frozenset(dropped)
    with pytest.raises(StoreRefused, match=named):
        lied_to.put_once("a", b"1")
    with pytest.raises(StoreRefused, match=named):
        lied_to.swap("a", b"1", None)
    assert all(".probe/" in path for method, path in liar.seen if method == "PUT")


def test_behind_the_same_proxy_told_to_be_honest_the_store_works_and_leaves_no_probe(
    liar: LyingProxy, lied_to: ObjectStore, moto_endpoint: S3Server
) -> None:
    assert lied_to.put_once("a", b"1") is True
    assert lied_to.put_once("a", b"1") is False
    prefix = lied_to.url.removeprefix(f"s3://{BUCKET}/")
    listed = moto_endpoint.client().list_objects_v2(Bucket=BUCKET, Prefix=prefix)["Contents"]
    assert [item["Key"] for item in listed] == [f"{prefix}/a"]
    assert sum(".probe/" in path and method == "DELETE" for method, path in liar.seen) == 1


def test_reading_needs_no_right_to_write(liar: LyingProxy, lied_to: ObjectStore) -> None:
    liar.drop = frozenset({"if-none-match", "if-match"})
    with pytest.raises(ObjectMissing):
        lied_to.get("a")
    assert list(lied_to.keys("")) == []
    assert {method for method, _ in liar.seen} == {"GET"}


def test_a_creation_whose_answer_was_lost_still_counts_as_ours(liar: LyingProxy, lied_to: ObjectStore) -> None:
    liar.lose_answers = 1
    assert lied_to.put_once("a", b"1") is True
    assert lied_to.put_once("a", b"1") is False, "control: the same bytes by another writer are not ours"


def test_a_swap_whose_answer_was_lost_still_counts_as_ours(liar: LyingProxy, lied_to: ObjectStore) -> None:
    first = lied_to.swap("p", b"1", None)
    liar.lose_answers = 1
    second = lied_to.swap("p", b"2", first)
    assert lied_to.get("p").etag == second
    assert second != first


def test_a_swap_whose_answer_was_lost_and_that_somebody_moved_since_is_a_conflict(
    liar: LyingProxy, lied_to: ObjectStore, moto_endpoint: S3Server
) -> None:
    first = lied_to.swap("p", b"1", None)
    key = f"{lied_to.url.removeprefix(f's3://{BUCKET}/')}/p"
    liar.meanwhile = lambda: moto_endpoint.client().put_object(Bucket=BUCKET, Key=key, Body=b"theirs")
    liar.lose_answers = 1
    with pytest.raises(PublishConflict):
        lied_to.swap("p", b"2", first)


def test_a_409_on_creation_is_asked_again_and_a_409_on_a_swap_is_a_conflict(
    liar: LyingProxy, lied_to: ObjectStore
) -> None:
    liar.conflicts = 2
    assert lied_to.put_once("a", b"1") is True
    liar.conflicts = 1
    with pytest.raises(PublishConflict):
        lied_to.swap("a", b"2", lied_to.get("a").etag)
    assert lied_to.get("a").body == b"1"
    liar.conflicts = 1
    assert lied_to.put_once("a", b"1") is False


def test_a_server_that_keeps_answering_409_is_the_machines_fault(liar: LyingProxy, lied_to: ObjectStore) -> None:
    liar.conflicts = 9
    with pytest.raises(DeviceError, match="run again later"):
        lied_to.put_once("a", b"1")


def test_one_bit_that_changed_on_the_way_is_refused(liar: LyingProxy, lied_to: ObjectStore) -> None:
    lied_to.put_once("a", b"hello")
    assert lied_to.get("a").body == b"hello"
    liar.flip_bodies = True
    with pytest.raises(StoreRefused, match="checksum"):
        lied_to.get("a")


def test_bytes_exchanged_behind_our_back_are_refused_where_the_record_of_them_was_kept(
    seaweedfs_endpoint: S3Server, use_server: UseServer
) -> None:
    store = open_store(use_server(seaweedfs_endpoint))
    store.put_once("a", b"hello")
    where = {"Bucket": BUCKET, "Key": f"{store.url.removeprefix(f's3://{BUCKET}/')}/a"}
    client = seaweedfs_endpoint.client()
    kept = client.head_object(**where)["Metadata"]
    client.put_object(**where, Body=b"hallo", Metadata=kept)
    with pytest.raises(StoreRefused, match="checksum"):
        store.get("a")
    client.put_object(**where, Body=b"hello", Metadata=kept)
    assert store.get("a").body == b"hello"


def test_a_body_that_breaks_off_is_read_again(liar: LyingProxy, lied_to: ObjectStore) -> None:
    lied_to.put_once("a", b"0123456789")
    liar.cut_bodies = 2
    assert lied_to.get("a").body == b"0123456789"
    liar.cut_bodies = 99
    with pytest.raises(DeviceError, match="cannot reach"):
        lied_to.get("a")


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "AWS_SECRET_ACCESS_KEY"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, "AWS_ACCESS_KEY_ID"),
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "no complete credentials"),
    ],
)
def test_wrong_or_absent_credentials_are_refused_with_what_to_set(
    seaweedfs_endpoint: S3Server, use_server: UseServer, changed: dict[str, str | None], advice: str
) -> None:
    store = open_store(use_server(seaweedfs_endpoint, **changed))
    for use in (lambda: store.put_once("a", b"1"), lambda: store.get("a"), lambda: list(store.keys(""))):
        with pytest.raises(StoreRefused, match=advice) as refused:
            use()
        assert "secret-of-tester" not in str(refused.value)


def test_a_bucket_that_is_not_there_is_refused_not_taken_for_an_empty_one(
    moto_endpoint: S3Server, use_server: UseServer
) -> None:
    use_server(moto_endpoint)
    store = open_store("s3://no-such-bucket/home")
    for use in (lambda: store.put_once("a", b"1"), lambda: store.get("a"), lambda: list(store.keys(""))):
        with pytest.raises(StoreRefused, match="create the bucket"):
            use()


def test_a_server_that_is_not_there_is_the_machines_fault_and_soon_known(use_server: UseServer) -> None:
    store = open_store(use_server(S3Server("http://127.0.0.1:9")))
    with pytest.raises(DeviceError, match="AWS_ENDPOINT_URL"):
        store.get("a")

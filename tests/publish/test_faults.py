"""Publishing through a server that fails, is slow or loses answers: the pointer always names a complete index."""

import time
from types import SimpleNamespace

import pytest

from fib_core.adapters.store_url import open_store
from fib_core.errors import DeviceError, PublishConflict
from fib_core.publication import history
from fib_core.publish import publish as publish_to
from tests.adapters.conftest import S3Server
from tests.publish.material import made, moves, save_definitions, terms, whole

# Of a second publication: solution, index, its signature, the old pointer, the new one's signature, the swap.
WRITES = 6


@pytest.fixture(autouse=True)
def _no_waiting_between_attempts(monkeypatch):
    monkeypatch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None, time=time.time))


@pytest.fixture
def url(liar, use_server):
    return use_server(S3Server(liar.endpoint))


@pytest.fixture
def published(url):
    """A store with one index in `dev`, and a publisher of a second one whose writes are counted from here."""
    store = open_store(url)
    save_definitions(store)
    publish_to(store, *made("1"), "dev", terms(0))
    return store, lambda: publish_to(store, *made("2", dps=True), "dev", terms(1))


def told_the_truth(liar, store):
    """The lies end; what the store says now is so."""
    for name in ("failures", "write_failures", "late_failures", "lose_answers", "conflicts", "honest_writes"):
        setattr(liar, name, 0)
    liar.delay_s = 0.0
    return whole(store, "dev")


def test_the_number_of_writes_is_what_the_tests_below_count_on(liar, published):
    _, publish = published
    before = len(liar.seen)
    publish()
    assert sum(method == "PUT" for method, _ in liar.seen[before:]) == WRITES


@pytest.mark.parametrize("number", range(1, WRITES + 1))
@pytest.mark.parametrize("lie", ["lose_answers", "late_failures"])
def test_a_write_that_happened_and_whose_answer_was_lost_once_changes_nothing(liar, published, lie, number):
    store, publish = published
    liar.honest_writes = number - 1
    setattr(liar, lie, 1)
    assert publish().number == 2
    assert told_the_truth(liar, store).index_digest == made("2", dps=True)[0].digest
    assert moves(store, "dev") == [made("1")[0].digest, made("2", dps=True)[0].digest]


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_is_unwell_for_a_moment_costs_only_time(liar, published, status):
    store, publish = published
    liar.failure_status, liar.failures = status, 3
    assert publish().number == 2
    told_the_truth(liar, store)


@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_a_server_that_fails_for_good_at_any_write_moves_nothing_and_a_second_try_succeeds(liar, published, number):
    store, publish = published
    liar.failure_status, liar.honest_writes, liar.write_failures = 500, number - 1, 99
    with pytest.raises(DeviceError, match="unwell, run again later"):
        publish()
    assert told_the_truth(liar, store).index_digest == made("1")[0].digest
    assert publish().number == 2
    assert len(moves(store, "dev")) == 2


@pytest.mark.parametrize("lie", ["lose_answers", "late_failures"])
def test_a_swap_whose_every_answer_is_lost_is_recognised_by_reading(liar, published, lie):
    store, publish = published
    liar.honest_writes = WRITES - 1
    setattr(liar, lie, 99)
    assert publish().number == 2
    assert told_the_truth(liar, store).number == 2


def test_a_lost_swap_over_which_somebody_moved_counts_once(liar, published, moto_endpoint, use_server):
    store, publish = published
    honest = open_store(store.url)

    def move_on():
        use_server(moto_endpoint)
        publish_to(honest, *made("3"), "dev", terms(2))

    liar.honest_writes, liar.lose_answers, liar.meanwhile = WRITES - 1, 1, move_on
    assert publish().number == 2
    assert told_the_truth(liar, store).number == 3
    assert moves(store, "dev") == [made("1")[0].digest, made("2", dps=True)[0].digest, made("3")[0].digest]


def test_a_swap_that_never_happened_because_somebody_moved_is_a_conflict(published):
    store, _ = published
    seen = history.look(store, "dev")
    publish_to(store, *made("3"), "dev", terms(1))
    with pytest.raises(PublishConflict, match="nothing was overwritten"):
        history.move(store, seen, history.Move(made("1")[0].digest, "publish"), terms(2).now)
    assert whole(store, "dev").number == 2


def test_a_slow_server_is_waited_for(liar, published):
    store, publish = published
    liar.delay_s = 0.05
    assert publish().number == 2
    told_the_truth(liar, store)

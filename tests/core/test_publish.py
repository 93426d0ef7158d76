"""Publish: objects before pointers, nobody's move overwritten, nothing half done visible."""

import json

import pytest

from fib_core import dispatch
from fib_core.errors import ContractError, PublishConflict
from fib_core.publication.history import channel_key, current, look
from fib_core.publish import Terms, foresee, index_key, publish
from schemas.canonical import canonical_bytes, digest_of_bytes
from schemas.decision import Profile
from schemas.index import DispatchIndex
from schemas.publication import ChannelPointer
from schemas.solution import Solution
from tests.core.road import walk
from tests.core.world import DEVICE, World, gemm, solution
from tests.fakes.memory_store import MemoryStore
from tests.publish.material import SIGNER

NOW, LATER = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"
WALKED = walk(World({"old": 1.0, "fast": 0.5}), [solution("fast", gemm())])
INDEX = dispatch.build(WALKED.snapshot, WALKED.decisions, WALKED.solutions, "quick", DEVICE, {}, WALKED.measured)
OTHER = INDEX.model_copy(update={"library_versions": {"torch": "3"}})


def unproved(get: object, index_digest: str) -> None:
    """A proof that finds nothing wrong; what a proof does is tested where it lives."""


def put(store: MemoryStore, index: DispatchIndex = INDEX, channel: str = "quick", now: str = NOW) -> ChannelPointer:
    return publish(store, index, WALKED.solutions, channel, Terms(unproved, now))


def test_a_reader_finds_the_index_and_all_its_solutions_under_their_digests() -> None:
    store = MemoryStore()
    pointer = put(store)
    body = store.get(index_key(pointer.index_digest)).body
    assert digest_of_bytes(body) == pointer.index_digest
    for item in DispatchIndex.model_validate_json(body).solutions:
        stored = json.loads(store.get(item.object_key).body)
        assert stored["definition_digest"] == gemm().digest
        found = Solution.model_validate(stored["solution"])
        assert found.digest_for(stored["definition_digest"]) == item.solution_digest


def test_publishing_the_current_index_again_changes_nothing() -> None:
    store = MemoryStore()
    first = put(store)
    before = dict(store.objects)
    assert put(store, now=LATER) == first
    assert store.objects == before


def test_the_pointer_remembers_what_was_there_before() -> None:
    store = MemoryStore()
    put(store)
    assert put(store, OTHER, now=LATER).previous == INDEX.digest
    now = current(store, "quick")
    assert (now.index_digest, now.previous, now.published_at) == (OTHER.digest, INDEX.digest, LATER)


class RacingStore(MemoryStore):
    """Somebody else moves the channel after it was read."""

    def put_once(self, key: str, body: bytes) -> bool:
        rival = ChannelPointer(index_digest="sha256:" + "9" * 64, previous=None, published_at=NOW)
        self.objects[channel_key("quick")] = canonical_bytes(rival.model_dump(mode="json"))
        return super().put_once(key, body)


@pytest.mark.parametrize("published_before", [True, False])
def test_somebody_elses_move_is_reported_and_never_overwritten(published_before: bool) -> None:
    store = RacingStore()
    if published_before:
        earlier = put(MemoryStore(), OTHER).model_dump(mode="json")
        MemoryStore.put_once(store, channel_key("quick"), canonical_bytes(earlier))
    with pytest.raises(PublishConflict, match=r"moved from .* to sha256:9+ .*run `fib run` again"):
        put(store)
    assert current(store, "quick").index_digest == "sha256:" + "9" * 64


def test_stable_refuses_a_quick_index_and_takes_a_full_one() -> None:
    store = MemoryStore()
    with pytest.raises(ContractError, match="stable takes no index of the profile quick"):
        put(store, channel="stable")
    assert store.objects == {}
    assert put(store, INDEX.model_copy(update={"profile": "full"}), channel="stable").previous is None


@pytest.mark.parametrize(
    ("channel", "profile", "terms", "said"),
    [
        ("stable", "quick", Terms(unproved, NOW), "stable takes no index of the profile quick"),
        ("../quick", "quick", Terms(unproved, NOW), "is not plain"),
        ("quick", "quick", Terms(unproved, NOW, None, (SIGNER.public,)), "no key signs"),
        ("signed", "quick", Terms(unproved, NOW), "signed is signed and no signing key is set"),
    ],
)
def test_what_a_publication_would_be_refused_for_is_refused_before_anything_is_measured(
    channel: str, profile: Profile, terms: Terms, said: str
) -> None:
    store = MemoryStore()
    publish(store, INDEX, WALKED.solutions, "signed", Terms(unproved, NOW, SIGNER))
    before = dict(store.objects)
    with pytest.raises(ContractError, match=said):
        foresee(store, profile, channel, terms)
    with pytest.raises(ContractError, match=said):
        publish(store, OTHER, WALKED.solutions, channel, terms)
    assert store.objects == before


def test_what_may_be_published_is_not_refused_beforehand_and_nothing_is_written() -> None:
    store = MemoryStore()
    put(store)
    before = dict(store.objects)
    for profile, channel, signer in (("quick", "quick", None), ("full", "stable", None), ("quick", "new", SIGNER)):
        foresee(store, profile, channel, Terms(unproved, NOW, signer))
    assert store.objects == before


class DyingStore(MemoryStore):
    """Stops before its n-th write."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def put_once(self, key: str, body: bytes) -> bool:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().put_once(key, body)


@pytest.mark.parametrize("writes", [0, 1])
def test_a_publisher_that_dies_half_way_leaves_no_pointer_and_can_start_again(writes: int) -> None:
    store = DyingStore(writes)
    with pytest.raises(KeyboardInterrupt):
        put(store)
    assert look(store, "quick").pointer is None
    store.left = 99
    assert put(store).index_digest == INDEX.digest


def test_a_missing_solution_is_named_before_the_pointer_moves() -> None:
    store = MemoryStore()
    with pytest.raises(ContractError, match="fast is named by the index but was not handed over"):
        publish(store, INDEX, {}, "quick", Terms(unproved, NOW))
    assert look(store, "quick").pointer is None


def test_an_index_that_fails_its_publish_test_is_not_published() -> None:
    store = MemoryStore()
    with pytest.raises(ContractError, match="not listed"):
        put(store, INDEX.model_copy(update={"solutions": ()}))
    assert store.objects == {}

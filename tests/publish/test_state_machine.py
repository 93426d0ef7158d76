"""Any history of publications, promotions, rollbacks, races, deaths, lost answers and collections leaves every channel
whole: its pointer complete and signed, its history unbroken and exactly what the winners did."""

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fib_core.errors import FibError, PublishConflict
from fib_core.publication import history
from fib_core.publication.garbage import collect
from fib_core.publish import promote, publish, rollback
from tests.fakes.memory_store import MemoryStore
from tests.publish.breaking_store import Around, deaf, dying, interrupted, nothing
from tests.publish.material import SIGNER, Made, made, moves, save_definitions, terms, whole

ITEMS: list[Made] = [made("0"), made("1", profile="full", fused=True), made("2", profile="full", dps=True)]
CHANNELS = st.sampled_from(["dev", "dev", "stable"])
NUMBERS = st.integers(0, len(ITEMS) - 1)
GRACE_S = 3600


class Killed(BaseException):
    """A process that ends here, without a word to anybody."""


def kill() -> None:
    raise Killed


class Model(RuleBasedStateMachine):
    """What each channel named, oldest first; machines add what may happen."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.named: dict[str, list[str]] = {}
        self.hours = 0.0

    @initialize()
    def a_run_stored_its_definitions(self) -> None:
        save_definitions(self.store)

    @invariant()
    def every_channel_is_whole_and_its_history_is_what_the_winners_did(self) -> None:
        assert history.channels(self.store) == sorted(self.named)
        for channel, named in self.named.items():
            assert whole(self.store, channel, SIGNER).index_digest == named[-1]
            assert moves(self.store, channel) == named

    def _act(self, channel: str, work: Callable[[], object], wanted: str | None) -> object:
        """Do it; the model follows the channel only if exactly the wanted move was made."""
        before = history.look(self.store, channel)
        known = list(self.named.get(channel, []))
        try:
            work()
            answer: object = "moved"
        except (FibError, Killed) as error:
            answer = error
        now = history.look(self.store, channel)
        if now.etag != before.etag and self.named.get(channel, []) == known:
            assert now.pointer is not None
            assert now.pointer.index_digest == wanted
            assert answer == "moved" or isinstance(answer, Killed), answer
            self.named[channel] = [*known, wanted]
        elif answer == "moved":
            assert now.pointer is not None
            assert now.pointer.index_digest == wanted
            return "stood"
        return answer

    def _publish(self, store: object, channel: str, number: int) -> None:
        publish(store, *ITEMS[number], channel, self._terms())  # type: ignore[arg-type]

    def _publish_amid_a_collection(self, channel: str, number: int, hours: float, at: int) -> None:
        """Before any write; a publication takes less than a grace."""

        def sweep(number: int, kind: str, key: str) -> None:
            if number == at:
                self.hours += hours
                self._collect()

        store = Around(self.store, sweep, nothing)
        self._act(channel, lambda: self._publish(store, channel, number), ITEMS[number][0].digest)

    def _collect(self) -> None:
        collect(self.store, self._now(), 0.0, GRACE_S, dry_run=False)

    def _terms(self):
        return terms(self.hours)

    def _now(self) -> str:
        return terms(self.hours).now


class Publication(Model):
    """Everybody at once."""

    @rule(channel=CHANNELS, number=NUMBERS)
    def publish(self, channel: str, number: int) -> None:
        self._act(channel, lambda: self._publish(self.store, channel, number), ITEMS[number][0].digest)

    @rule(channel=CHANNELS, number=NUMBERS, at=st.integers(1, 8), before=st.booleans())
    def publish_and_die(self, channel: str, number: int, at: int, before: bool) -> None:
        store = dying(self.store, at, before, kill)
        self._act(channel, lambda: self._publish(store, channel, number), ITEMS[number][0].digest)

    @rule(channel=CHANNELS, number=NUMBERS, at=st.integers(1, 8))
    def publish_and_hear_nothing(self, channel: str, number: int, at: int) -> None:
        store = deaf(self.store, at)
        self._act(channel, lambda: self._publish(store, channel, number), ITEMS[number][0].digest)

    @rule(origin=CHANNELS, channel=CHANNELS)
    def promote(self, origin: str, channel: str) -> None:
        wanted = self.named.get(origin, [None])[-1]
        self._act(channel, lambda: promote(self.store, origin, channel, self._terms()), wanted)

    @rule(channel=CHANNELS)
    def roll_back(self, channel: str) -> None:
        past = self.named.get(channel, [])
        wanted = next((item for item in reversed(past) if item != past[-1]), None)
        self._act(channel, lambda: rollback(self.store, channel, None, self._terms()), wanted)

    @rule(channel=CHANNELS, number=NUMBERS, rival=NUMBERS)
    def race(self, channel: str, number: int, rival: int) -> None:
        """The rival moves after our objects are there and just before our swap."""
        ours, theirs = ITEMS[number][0].digest, ITEMS[rival][0].digest
        outcomes: list[object] = []

        def move_first() -> None:
            outcomes.append(self._act(channel, lambda: self._publish(self.store, channel, rival), theirs))

        before = len(self.named.get(channel, []))
        store = interrupted(self.store, move_first)
        answer = self._act(channel, lambda: self._publish(store, channel, number), ours)
        moved = len(self.named.get(channel, [])) - before
        if outcomes and outcomes[0] == "moved" and ours != theirs:
            assert isinstance(answer, PublishConflict)
            assert moved == 1, "exactly one of the two"
        assert moved <= 1

    @rule(hours=st.sampled_from([0.0, 0.4, 0.6, 2.0]))
    def collect(self, hours: float) -> None:
        self.hours += hours
        self._collect()

    @rule(at=st.integers(1, 4))
    def collect_and_die(self, at: int) -> None:
        with contextlib.suppress(Killed):
            collect(dying(self.store, at, True, kill), self._now(), 0.0, GRACE_S, dry_run=False)

    @rule(channel=CHANNELS, number=NUMBERS, hours=st.sampled_from([0.0, 0.9]), at=st.integers(1, 8))
    def a_collection_while_publishing(self, channel: str, number: int, hours: float, at: int) -> None:
        self._publish_amid_a_collection(channel, number, hours, at)


class Collecting(Model):
    """One channel, and collections at every moment of its publications."""

    @rule(number=NUMBERS)
    def publish(self, number: int) -> None:
        self._act("dev", lambda: self._publish(self.store, "dev", number), ITEMS[number][0].digest)

    @rule(hours=st.sampled_from([0.3, 0.6, 2.0]))
    def wait(self, hours: float) -> None:
        self.hours += hours

    @rule()
    def collect(self) -> None:
        self._collect()

    @rule(number=NUMBERS, hours=st.sampled_from([0.0, 0.9]), at=st.integers(1, 6))
    def a_collection_while_publishing(self, number: int, hours: float, at: int) -> None:
        self._publish_amid_a_collection("dev", number, hours, at)


QUICK = settings(
    max_examples=8, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
TestPublication, TestCollecting = Publication.TestCase, Collecting.TestCase
TestPublication.settings = TestCollecting.settings = QUICK


LONG = settings(QUICK, max_examples=400, stateful_step_count=50)


@pytest.mark.slow
class TestPublicationForLong(Publication.TestCase):
    settings = LONG


@pytest.mark.slow
class TestCollectingForLong(Collecting.TestCase):
    settings = LONG

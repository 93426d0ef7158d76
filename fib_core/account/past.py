"""A published index with the records behind it, read back from the store: what scores of a past run are made of.

In: an index, an open store (the port). Out: :class:`Past`. Measures nothing and writes nothing; what the store does not
hold any more is counted, never guessed. Every record is checked against the digest that names it.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from fib_core import ledger
from fib_core.account.projections import bounds_of
from fib_core.account.scorecard import Evidence, measured
from fib_core.account.scoring import SCREEN_TIMES
from fib_core.account.traffic import Measured
from fib_core.account.trials import Pair
from fib_core.errors import ObjectMissing, StoreRefused
from fib_core.ledger import AnyRecord
from fib_core.ports import ObjectStore
from schemas.base import Digest
from schemas.decision import Decision
from schemas.evaluation import Evaluation
from schemas.index import DispatchIndex
from schemas.screen_log import ScreenLog
from schemas.snapshot import Snapshot

ROUND_TIMES = "median times of the confirmation rounds"
SCREENS = "screens"
READERS = 8
"""Objects read at a time: a remote store answers slowly, but to many at once."""
Progress = Callable[[str, int, int], None]
"""What is being read, how many are read, of how many."""


@dataclass(frozen=True)
class Past:
    """An index, its snapshot, its decisions and their evaluations, as far as the store has them."""

    index: DispatchIndex
    snapshot: Snapshot
    decisions: tuple[Decision, ...]
    evaluations: tuple[Evaluation, ...]
    missing_decisions: int
    missing_evaluations: int
    screened: tuple[Evaluation, ...] = ()
    not_applicable: tuple[Pair, ...] = ()

    @property
    def names(self) -> dict[Digest, str]:
        """Solutions that the index names."""
        blocks = [item for item in self.index.definitions if item.incumbent_digest and item.incumbent_name]
        incumbents = {item.incumbent_digest or "": item.incumbent_name or "" for item in blocks}
        return incumbents | {item.solution_digest: item.name for item in self.index.solutions}

    @property
    def evidence(self) -> Evidence:
        """For a scorecard: times come from the confirmation rounds, and from the screen where there were none."""
        rounds, screen = measured(self.evaluations, ROUND_TIMES), measured(self.screened, SCREEN_TIMES)
        by = _first(rounds, screen) if self.screened else rounds
        bounds_us = bounds_of((*self.screened, *self.evaluations))
        return Evidence(self.snapshot, self.decisions, self.index, by, bounds_us, self.screened, self.not_applicable)


def read_past(store: ObjectStore, index: DispatchIndex, progress: Progress = lambda *_: None) -> Past:
    """Everything behind ``index``; raises ObjectMissing without its snapshot, StoreRefused for a damaged record."""
    snapshot = ledger.load(store, "snapshots", index.snapshot_digest, Snapshot)
    wanted = decisions_in(index)
    decisions = list(_records(store, "decisions", wanted, Decision, progress))
    named = list(dict.fromkeys(digest for item in decisions for digest in item.evaluations))
    evaluations = list(_records(store, ledger.EVALUATIONS, named, Evaluation, progress))
    log = _screen_log(store, index)
    screened = list(_records(store, ledger.EVALUATIONS, log.evaluations if log else (), Evaluation, progress))
    lost = len(named) - len(evaluations) + (len(log.evaluations) - len(screened) if log else 0)
    return Past(
        index, snapshot, tuple(decisions), tuple(evaluations), len(wanted) - len(decisions), lost,
        tuple(screened), log.not_applicable if log else (),
    )  # fmt: skip


def save_screen(
    store: ObjectStore, index_digest: Digest, screened: Iterable[Evaluation], not_applicable: Iterable[Pair]
) -> None:
    """Note beside an index which screen it came from; the first note stays, since another run of it saw as much."""
    log = ScreenLog(
        index_digest=index_digest,
        evaluations=tuple(dict.fromkeys(item.digest for item in screened)),
        not_applicable=tuple(sorted(set(not_applicable))),
    )
    store.put_once(ledger.object_key(SCREENS, index_digest), ledger.body_of(log))


def decisions_in(index: DispatchIndex) -> list[Digest]:
    """Every decision that an index names: of entries, of all keys that an entry covers, of keys that were kept."""
    found: dict[Digest, None] = {}
    for block in index.definitions:
        for entry in block.entries:
            found |= dict.fromkeys([entry.decision_digest, *(item.decision_digest for item in entry.evidence)])
        found |= dict.fromkeys(item.decision_digest for item in block.kept)
    return list(found)


def _screen_log(store: ObjectStore, index: DispatchIndex) -> ScreenLog | None:
    """None for indexes from before logs were kept, and for those that came from another store without theirs."""
    key = ledger.object_key(SCREENS, index.digest)
    try:
        log = ScreenLog.model_validate_json(store.get(key).body)
    except ObjectMissing:
        return None
    except ValueError as error:
        raise StoreRefused(f"{key} in {store.url} is damaged: {error}; delete it and run again") from error
    if log.index_digest != index.digest:
        raise StoreRefused(f"{key} in {store.url} is the log of {log.index_digest}; delete it and run again")
    return log


def _first(rounds: Measured, screen: Measured) -> Measured:
    """Workload by workload: times of the rounds where there are any, else those of the screen; never one of each."""
    timed = {workload for _, workload in rounds.times}
    rest = {pair: us for pair, us in screen.times.items() if pair[1] not in timed}
    spoiled = rounds.spoiled | {pair for pair in screen.spoiled if pair[1] not in timed}
    return Measured({**rounds.times, **rest}, f"{ROUND_TIMES}, else {screen.source}", frozenset(spoiled))


def _records(
    store: ObjectStore, prefix: str, digests: Iterable[Digest], model: type[AnyRecord], progress: Progress
) -> Iterator[AnyRecord]:
    """Those that are there, in the order asked for."""

    def read(digest: Digest) -> AnyRecord | None:
        try:
            return ledger.load(store, prefix, digest, model)
        except ObjectMissing:
            return None

    listed = list(digests)
    with ThreadPoolExecutor(READERS) as pool:
        for number, record in enumerate(pool.map(read, listed), 1):
            progress(prefix, number, len(listed))
            if record is not None:
                yield record

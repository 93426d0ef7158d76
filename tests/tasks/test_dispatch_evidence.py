"""What the dispatch stage reads to tell how a decision was measured: all of a promotion, one of a kept key."""

import pytest

from fib_core import ledger
from fib_core.errors import ObjectMissing
from schemas.evaluation import Evaluation
from tasks.dispatch import measured_of
from tests.core.test_dispatch import PROMOTED, WALKED
from tests.fakes.memory_store import MemoryStore

RECORDED = MemoryStore()
for _item in WALKED.rounds.values():
    ledger.save(RECORDED, ledger.EVALUATIONS, _item)


class Load:
    """Reads evaluations by digest and remembers which."""

    def __init__(self, without: str = "") -> None:
        self.names: list[str] = []
        self._without = without

    def __call__(self, digest: str) -> Evaluation:
        self.names.append(digest)
        store = MemoryStore() if digest == self._without else RECORDED
        return ledger.load(store, ledger.EVALUATIONS, digest, Evaluation)


def test_behind_a_promotion_every_evaluation_is_read() -> None:
    load = Load()
    assert measured_of(load, PROMOTED[0]) == WALKED.measured[PROMOTED[0].digest]
    assert sorted(load.names) == sorted(PROMOTED[0].evaluations)


def test_of_a_kept_key_one_evaluation_tells() -> None:
    load = Load()
    kept = PROMOTED[0].model_copy(update={"verdict": "kept_incumbent", "solution_digest": None})
    assert measured_of(load, kept) is not None
    assert len(load.names) == 1


def test_a_key_without_rounds_has_nothing_to_tell() -> None:
    assert measured_of(Load(), PROMOTED[0].model_copy(update={"evaluations": ()})) is None


def test_a_promotion_whose_evidence_is_gone_is_never_published_without_it() -> None:
    with pytest.raises(ObjectMissing):
        measured_of(Load(without=PROMOTED[0].evaluations[3]), PROMOTED[0])

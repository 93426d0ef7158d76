"""What earlier decisions a store holds: their controls tell how far two runs of one program lie apart here.

In: an object store. Out: every stored Decision, each read once a run. No record and no collection, on purpose: whatever
walks through a task's arguments would walk through thousands of decisions at each call.
"""

from fib_core import ledger
from fib_core.ports import ObjectStore
from schemas.decision import Decision

DECISIONS = "decisions"


class DecisionMemory:
    """Decisions of all runs on a store, this one's included."""

    def __init__(self) -> None:
        self._known: dict[str, Decision] = {}

    def all_of(self, store: ObjectStore) -> tuple[Decision, ...]:
        """What is stored now; raises StoreRefused on damage."""
        for key in store.keys(f"{DECISIONS}/"):
            if key not in self._known:
                digest = f"sha256:{key.removeprefix(f'{DECISIONS}/').removesuffix('.json')}"
                self._known[key] = ledger.load(store, DECISIONS, digest, Decision)
        return tuple(self._known.values())

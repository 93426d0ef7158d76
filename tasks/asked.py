"""What a command names is there: asked before a server, a cluster or a compiler is started for it.

In: settings, names. Out: nothing, or one sentence. Loads neither Prefect nor a device, reads no workload and no call.
"""

import difflib
from collections.abc import Collection, Sequence

from fib_core import publish as room
from fib_core.adapters.flashinfer_trace import read_definitions
from fib_core.adapters.store_url import open_store
from fib_core.errors import ContractError
from fib_core.publication import history
from tasks import release
from tasks.settings import Settings

SHOWN = 3
_ALIKE = 0.4
"""Share of letters in common (difflib's ratio) from which a name is worth showing."""


def require_run(settings: Settings, names: Sequence[str] | None) -> None:
    """Raise ContractError unless dataset, definitions and channel can be what `fib run` was asked for."""
    known = read_definitions(settings.dataset)
    require_known(names or (), known, str(settings.dataset))
    room.foresee(open_store(settings.store_url), settings.profile, settings.channel, release.terms(settings.new_signer))


def require_remeasure(settings: Settings, names: Sequence[str] | None) -> None:
    """Raise ObjectMissing for a channel that is not there, ContractError for a dataset or a definition."""
    store = open_store(settings.store_url)
    index = room.read_index(store, history.current(store, settings.channel).index_digest)
    require_known(names or (), [block.name for block in index.definitions], f"the index {index.digest}")
    read_definitions(settings.dataset)


def require_known(names: Collection[str], known: Collection[str], place: str) -> None:
    """Raise ContractError for the first name that ``place`` does not hold, with the nearest that it does."""
    for name in sorted(set(names) - set(known)):
        near = difflib.get_close_matches(name, known, SHOWN, _ALIKE)
        some = ", ".join(near or sorted(known)[:SHOWN]) or "none"
        words = "the nearest are" if near else f"it holds {len(known)}, the first are"
        raise ContractError(f"no definition named {name!r}; {words}: {some}", place)

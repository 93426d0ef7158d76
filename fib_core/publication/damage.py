"""What is wrong with an object that cannot be read, and where a channel's last sound pointer lies.

In: an error of a parser; a store (port) and a channel. Out: words for one sentence. Knows nothing of what an index
holds.
"""

from collections.abc import Iterator

from pydantic import ValidationError

from fib_core.errors import FibError
from fib_core.ports import ObjectStore
from schemas.canonical import digest_of_bytes
from schemas.publication import ChannelPointer

SHOWN = 3


def in_words(error: ValueError) -> str:
    """What a parser disliked, in one line: the first problems by field, the others counted."""
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    problems = [
        ": ".join([*filter(None, [".".join(map(str, item["loc"]))]), item["msg"][0].lower() + item["msg"][1:]])
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    rest = len(problems) - SHOWN
    return "; ".join(problems[:SHOWN]) + (f"; and {rest} more" if rest > 0 else "")


def how_to_restore(store: ObjectStore, channel: str, key: str, archive: str) -> str:
    """Which archived pointer of ``channel`` is the newest under ``archive``, and what to do with it."""
    newest = max(_archived(store, channel, archive), default=None)
    if newest is None:
        return "no pointer of this channel was archived, so there is nothing to restore: remove it and publish again"
    number, index_digest, where = newest
    return (
        f"the newest archived pointer is {where} (move {number}, index {index_digest}): copy it over {key}, then make "
        "again the move that was lost (publish, promote or rollback); until then the channel names what was before it"
    )


def _archived(store: ObjectStore, channel: str, archive: str) -> Iterator[tuple[int, str, str]]:
    """Number, index and key of every sound pointer of the channel. An object that vanished or is damaged is not one."""
    for key in store.keys(f"{archive}/"):
        try:
            body = store.get(key).body
            pointer = ChannelPointer.model_validate_json(body)
        except (FibError, ValueError):
            continue
        if pointer.channel == channel and key == f"{archive}/{digest_of_bytes(body).removeprefix('sha256:')}.json":
            yield pointer.number, pointer.index_digest, key

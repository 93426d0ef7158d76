"""Which move left an index behind. In: a channel's moves, newest first; an index digest. Out: the rollback, or None.

A pipeline that is started by a clock makes the same index again from the same records. So an index that a rollback
left stays left until somebody names it by hand (`fib rollback --to`, `fib promote`): whatever was published in between,
no run brings it back. Pure; knows no store and nothing of what an index holds.
"""

from collections.abc import Iterable

from schemas.base import Digest
from schemas.publication import ChannelPointer


def left_by(moves: Iterable[ChannelPointer], digest: Digest) -> ChannelPointer | None:
    """The rollback that went back over the newest move to ``digest``; None if there is none, or no such move.

    A rollback leaves what the channel named since it last named the rollback's own index. Reads no further than to the
    newest move to ``digest``.
    """
    over: list[ChannelPointer] = []
    for move in moves:
        over = [item for item in over if item.index_digest != move.index_digest]
        if move.index_digest == digest:
            return over[-1] if over else None
        if move.action == "rollback":
            over.append(move)
    return None

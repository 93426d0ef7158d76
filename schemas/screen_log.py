"""ScreenLog: which evaluations the screen behind an index made, so that its scores can be read again later."""

from typing import Literal

from schemas.base import Digest, Record


class ScreenLog(Record):
    """Kept beside an index, under the index's digest. ``not_applicable``: (solution, workload) outside its support."""

    schema_version: Literal["1"] = "1"
    index_digest: Digest
    evaluations: tuple[Digest, ...]
    not_applicable: tuple[tuple[Digest, Digest], ...] = ()

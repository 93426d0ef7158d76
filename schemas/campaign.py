"""Campaign: one finished repetition of the confirmation rounds of one contest, and what was decided from it."""

from typing import Literal

from schemas.base import Digest, Natural, Record


class Campaign(Record):
    """The write-once object ``campaigns/<contest>/<number>.json``. A campaign is decided once, never again."""

    schema_version: Literal["1"] = "1"
    contest: Digest
    number: Natural
    decisions: tuple[Digest, ...]

"""Files of a dataset folder: which exist, and their JSON with strict edges (duplicate keys, depth, exact numbers).

In: paths. Out: parsed values, or :class:`Malformed` with a plain reason and the line. Knows no record.
"""

import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAX_DEPTH = 64
MAX_EXACT = 2**53 - 1
LFS_MARK = b"version https://git-lfs"


class Malformed(ValueError):
    """Text that is not the JSON we accept; ``line`` 0 = the whole file."""

    def __init__(self, reason: str, line: int = 0) -> None:
        self.reason, self.line = reason, line
        super().__init__(reason)


def files_under(root: Path, folder: str, suffixes: tuple[str, ...]) -> list[Path]:
    """Entries of any depth whose names end so, sorted; folders of that name too (they are somebody's mistake)."""
    found: list[Path] = []
    seen: set[str] = set()
    for place, folders, names in os.walk(root / folder, followlinks=True):
        real = os.path.realpath(place)
        if real in seen:  # a link that leads back up
            folders.clear()
            continue
        seen.add(real)
        found += [Path(place) / name for name in [*folders, *names] if name.endswith(suffixes)]
    return sorted(found)


def require_regular(path: Path) -> None:
    """Refuse folders, pipes and devices before anything opens them."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise Malformed(f"cannot be read: {_os_reason(error)}") from error
    if not stat.S_ISREG(mode):
        raise Malformed("is a folder, not a file" if stat.S_ISDIR(mode) else "is not a regular file")


def read_json(path: Path) -> Any:
    """Parse one JSON file; raises Malformed."""
    require_regular(path)
    try:
        body = path.read_bytes()
    except OSError as error:
        raise Malformed(f"cannot be read: {_os_reason(error)}") from error
    return parse_json(decode(body))


def read_rows(path: Path) -> Iterator[tuple[int, str | Malformed]]:
    """Non-empty lines of a JSONL file with their 1-based numbers; an unreadable file is one Malformed at line 0."""
    try:
        require_regular(path)
        with path.open("rb") as stream:
            head = stream.read(8192)
            if b"\0" in head:
                yield 0, Malformed("is binary, not text")
                return
            stream.seek(0)
            yield from decoded_rows(enumerate(stream, start=1))
    except Malformed as error:
        yield 0, error
    except OSError as error:
        yield 0, Malformed(f"cannot be read: {_os_reason(error)}")


def decoded_rows(rows: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, str | Malformed]]:
    """Decode line by line, so that one broken line does not cost its neighbours."""
    for number, raw in rows:
        body = raw.strip()
        if not body:
            continue
        try:
            yield number, decode(body)
        except Malformed as error:
            yield number, error


def decode(body: bytes) -> str:
    """UTF-8 (a byte order mark is tolerated) that is not a Git LFS pointer."""
    if body.startswith(LFS_MARK):
        raise Malformed("is a Git LFS pointer, not the content; fetch it with `git lfs pull`")
    if b"\0" in body:
        raise Malformed("is binary, not text")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise Malformed(f"is not UTF-8: byte 0x{body[error.start]:02x} at offset {error.start}", line) from error


def parse_json(text: str) -> Any:
    """Strict at the edges: no duplicate keys, bounded depth, exact numbers; NaN and Infinity tokens become strings."""
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        line, column = error.lineno, error.colno
        raise Malformed(f"not JSON: {_hint(text, error)} (line {line}, column {column})", line) from error
    except RecursionError as error:
        raise Malformed(f"nested deeper than {MAX_DEPTH} levels") from error
    _require_depth(value)
    if "\\u" in text:
        _require_encodable(value)
    return value


def printable(text: str, limit: int = 2000) -> str:
    """Other people's text for a terminal: control characters and broken bytes as escapes, an end to everything."""
    if text.isprintable() and len(text) <= limit:
        return text
    shown = "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text[:limit])
    return shown + ("..." if len(text) > limit else "")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Malformed(f"key {twice[:60]!r} appears twice in one object")
    return value


def _exact_int(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > MAX_EXACT:
        raise Malformed(f"number {text[:24]} is beyond 2^53 and has no exact JSON form")
    return int(text)


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Malformed(f"number {text[:24]} is too large for a double")
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_no_duplicates, parse_constant=str, parse_int=_exact_int, parse_float=_finite_float
)


def _require_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise Malformed(f"nested deeper than {MAX_DEPTH} levels")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _require_encodable(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise Malformed("holds half of a surrogate pair (a \\ud8.. escape without its partner)") from error


def _hint(text: str, error: json.JSONDecodeError) -> str:
    """Name the usual suspects; json's own words for the rest."""
    here, before = text[error.pos : error.pos + 2], text[: error.pos].rstrip()
    if here in ("//", "/*") or here[:1] == "#":
        return "comments are not allowed"
    if here[:1] in ("]", "}") and before.endswith(","):
        return f"trailing comma before {here[0]!r}"
    if here[:1] == "'":
        return "strings need double quotes"
    if not here and error.pos >= len(text.rstrip()):
        return "the text ends in the middle of a value"
    return error.msg[:1].lower() + error.msg[1:]


def _os_reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)

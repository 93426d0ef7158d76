"""Call logs of a dataset folder: ``calls/**/*.jsonl[.gz]`` as lines with their place (the TraceSource port).

In: a dataset root. Out: raw lines; what cannot even be decoded is kept aside as quarantined. Parsing is the
collect room's.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from fib_core.adapters.flashinfer_trace_files import Malformed, decode, files_under, printable, require_regular
from schemas.trace import QuarantinedRow

SUFFIXES = (".jsonl", ".jsonl.gz")


class CallLogs:
    """One pass over all call logs. ``quarantined`` is complete once :meth:`lines` is exhausted."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.files = tuple(files_under(root, "calls", SUFFIXES))
        self.quarantined: list[QuarantinedRow] = []

    def lines(self) -> Iterator[tuple[Path, int, str]]:
        """(file relative to the root, 1-based line, text) in file order; a torn file yields what it still holds."""
        self.quarantined.clear()
        for path in self.files:
            yield from self._lines_of(path)

    def _lines_of(self, path: Path) -> Iterator[tuple[Path, int, str]]:
        name = path.relative_to(self._root)
        number = 0
        try:
            require_regular(path)
            with _opened(path) as stream:
                for number, raw in enumerate(stream, start=1):
                    text = self._decoded(name, number, raw)
                    if text:
                        yield name, number, text
        except Malformed as error:
            self._quarantine(name, 0, error.reason)
        except (EOFError, zlib.error) as error:
            self._quarantine(name, number + 1, f"the compressed log ends early or is damaged: {error}")
        except OSError as error:
            self._quarantine(name, 0, f"cannot be read: {error.strerror or error}")

    def _decoded(self, name: Path, number: int, raw: bytes) -> str:
        try:
            return decode(raw).strip()
        except Malformed as error:
            self._quarantine(name, number, error.reason)
            return ""

    def _quarantine(self, name: Path, line: int, reason: str) -> None:
        file, reason = printable(name.as_posix()), printable(reason)
        self.quarantined.append(QuarantinedRow(file=file, line=line, kind="call", reason=reason))


def read_call_logs(root: Path) -> CallLogs:
    """The call logs under a dataset root, as a TraceSource."""
    return CallLogs(root)


def _opened(path: Path) -> BinaryIO:
    if path.name.endswith(".gz"):
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")

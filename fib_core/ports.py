"""What the outside world must offer. Rooms and tasks know these Protocols; adapters implement them; wiring chooses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from schemas.environment import Environment
from schemas.solution import Solution
from schemas.visit import VisitRequest, VisitResult


@dataclass(frozen=True)
class StoredObject:
    """Bytes and the opaque version tag that :meth:`ObjectStore.swap` expects back."""

    body: bytes
    etag: str


class ObjectStore(Protocol):
    """Write-once objects and compare-and-swap pointers under slash-separated keys.

    Every method may raise ``StoreRefused`` (credentials, integrity) or ``DeviceError`` (unreachable after retries).
    """

    @property
    def url(self) -> str:
        """Where it is, for people: ``file:///...`` or ``s3://bucket/prefix``; no secrets."""

    def get(self, key: str) -> StoredObject:
        """Read one object; raises ``ObjectMissing``."""

    def put_once(self, key: str, body: bytes) -> bool:
        """Create ``key`` atomically and durably; False if it exists already (the old bytes stay)."""

    def swap(self, key: str, body: bytes, expected_etag: str | None) -> str:
        """Replace ``key`` only if its tag is ``expected_etag`` (None = must not exist); returns the new tag.

        Raises ``PublishConflict`` when somebody else was faster.
        """

    def keys(self, prefix: str) -> Iterator[str]:
        """Keys that start with ``prefix``, in lexical order."""

    def delete(self, key: str) -> None:
        """Remove ``key`` durably; nothing happens if it is not there. For collections alone."""


class KernelRunner(Protocol):
    """Brings contestants to a device. One visit at a time per device; never raises for a candidate's fault."""

    def describe(self) -> Environment:
        """The device, its class and the libraries that candidates will meet; Jobs are keyed by them."""

    def prepare(self, solutions: Sequence[Solution], build_s: float) -> None:
        """Compile ahead what compiles, on all cores, while nothing is timed; a failure is for the visit to report."""

    def visit(self, request: VisitRequest) -> VisitResult:
        """Run one visit to its end. A machine's fault comes back as ``VisitResult.fault``."""


class RunTracker(Protocol):
    """Remembers a run: parameters, metrics, tables and documents."""

    def log_run(
        self,
        name: str,
        params: dict[str, str],
        metrics: dict[str, float],
        tags: dict[str, str],
        documents: dict[str, str],
        tables: dict[str, Sequence[dict[str, Any]]],
        inputs: Sequence[dict[str, str]],
    ) -> str:
        """Record one evaluation snapshot; returns the tracker's run id."""

    def run_url(self, run_id: str) -> str:
        """Where a person opens that run."""


class TraceSource(Protocol):
    """Yields raw call-log lines with their place; parsing and quarantine belong to the collect room."""

    def lines(self) -> Iterator[tuple[Path, int, str]]:
        """(file, 1-based line number, text) in file order."""

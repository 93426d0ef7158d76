"""Stores that break at a chosen write: one dies before or after it, one loses its answer, one lets others in first."""

from collections.abc import Callable, Iterator

from fib_core.errors import DeviceError
from fib_core.ports import ObjectStore, StoredObject

Hook = Callable[[int, str, str], None]  # the number of the write from 1, its kind, its key


class Around:
    """Any store, with something done before and after each write (put, swap, delete), counted from 1."""

    def __init__(self, inner: ObjectStore, before: Hook, after: Hook) -> None:
        self._inner, self._before, self._after, self.writes = inner, before, after, 0

    @property
    def url(self) -> str:
        return self._inner.url

    def get(self, key: str) -> StoredObject:
        return self._inner.get(key)

    def keys(self, prefix: str) -> Iterator[str]:
        return self._inner.keys(prefix)

    def put_once(self, key: str, body: bytes) -> bool:
        return self._write("put", key, lambda: self._inner.put_once(key, body))

    def swap(self, key: str, body: bytes, expected_etag: str | None) -> str:
        return self._write("swap", key, lambda: self._inner.swap(key, body, expected_etag))

    def delete(self, key: str) -> None:
        self._write("delete", key, lambda: self._inner.delete(key))

    def _write(self, kind: str, key: str, work: Callable):
        self.writes += 1
        number = self.writes
        self._before(number, kind, key)
        answer = work()
        self._after(number, kind, key)
        return answer


def nothing(number: int, kind: str, key: str) -> None:
    """Let it pass."""


def dying(inner: ObjectStore, at: int, before: bool, die: Callable[[], None]) -> Around:
    """Calls ``die`` before or after its write number ``at``."""

    def strike(number: int, kind: str, key: str) -> None:
        if number == at:
            die()

    return Around(inner, strike if before else nothing, nothing if before else strike)


def deaf(inner: ObjectStore, at: int) -> Around:
    """Write number ``at`` happens and its answer is lost for good."""

    def lose() -> None:
        raise DeviceError("the answer did not arrive")

    return dying(inner, at, False, lose)


def interrupted(inner: ObjectStore, meanwhile: Callable[[], object], swap: int = 1) -> Around:
    """Somebody else acts just before that swap."""
    swaps: list[int] = []

    def act(number: int, kind: str, key: str) -> None:
        if kind == "swap":
            swaps.append(number)
            if len(swaps) == swap:
                meanwhile()

    return Around(inner, act, nothing)

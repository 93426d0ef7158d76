"""An ObjectStore in memory for tests of rooms and tasks; passes the same conformance suite as the real adapters."""

import hashlib
import threading
from collections.abc import Iterator

from fib_core.adapters.store_key import checked_key, checked_prefix
from fib_core.errors import ObjectMissing, PublishConflict
from fib_core.ports import StoredObject


class MemoryStore:
    """Thread-safe; ``objects`` is open so that a test can corrupt or count what is stored."""

    def __init__(self, name: str = "test") -> None:
        self.objects: dict[str, bytes] = {}
        self._name = name
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"memory://{self._name}"

    def get(self, key: str) -> StoredObject:
        checked_key(key)
        with self._lock:
            if key not in self.objects:
                raise ObjectMissing(f"nothing is stored under {key} in {self.url}")
            return StoredObject(self.objects[key], _etag(self.objects[key]))

    def put_once(self, key: str, body: bytes) -> bool:
        checked_key(key)
        with self._lock:
            if key in self.objects:
                return False
            self.objects[key] = bytes(body)
            return True

    def swap(self, key: str, body: bytes, expected_etag: str | None) -> str:
        checked_key(key)
        with self._lock:
            current = _etag(self.objects[key]) if key in self.objects else None
            if current != expected_etag:
                raise PublishConflict(f"{key} in {self.url} is at {current}, not at {expected_etag}; read it again")
            self.objects[key] = bytes(body)
            return _etag(body)

    def delete(self, key: str) -> None:
        checked_key(key)
        with self._lock:
            self.objects.pop(key, None)

    def keys(self, prefix: str) -> Iterator[str]:
        checked_prefix(prefix)
        with self._lock:
            found = sorted(key for key in self.objects if key.startswith(prefix))
        return iter(found)


def _etag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()

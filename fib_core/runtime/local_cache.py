"""The pulled objects on this machine. In: store keys and bytes. Out: the same bytes, durably and atomically.

The layout is the store's own (``indexes/``, ``solutions/``, ``definitions/``, ``channels/``) plus ``current.json``, the
pointer that is swapped last. Objects are named by content, so writing one twice, or dying before the pointer moves,
harms nobody. Knows neither records nor stores.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fib_core.errors import DeviceError, ObjectMissing, StoreRefused

CURRENT = "current.json"


class LocalCache:
    """One folder; safe for concurrent readers and for writers that hold :meth:`writing`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def build_dir(self) -> Path:
        """Artefacts compiled here from pulled sources; never shared with the folder that candidates are judged in."""
        return self.root / "build"

    def get(self, key: str) -> bytes:
        """Read one object; raises ``ObjectMissing``, or ``DeviceError`` if this machine does not let us."""
        try:
            return (self.root / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ObjectMissing(f"{key} is not in the local cache {self.root}; run `fib pull`") from error
        except OSError as error:
            raise DeviceError(f"{self.root / key} cannot be read: {error.strerror}") from error

    def put(self, key: str, body: bytes) -> None:
        """Write ``key`` so that a reader sees the old bytes or the new ones, never a part, even after a crash.

        Raises ``DeviceError`` where nothing can be written: a full disk, a read-only home.
        """
        try:
            self._put(self.root / key, body)
        except OSError as error:
            raise self._unwritable(error) from error

    def _put(self, path: Path, body: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".writing-{os.getpid()}-{threading.get_ident()}-{path.name}")
        try:
            with part.open("wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        _sync_folder(path.parent)

    def pointer(self, channel: str | None = None) -> dict[str, str]:
        """What a channel (None: the last one pulled) points at here; raises ``ObjectMissing`` or ``StoreRefused``."""
        key = CURRENT if channel is None else channel_key(channel)
        try:
            value = json.loads(self.get(key))
        except ValueError as error:
            raise StoreRefused(f"{self.root / key} is not JSON ({error}); run `fib pull` again") from error
        if not isinstance(value, dict) or not isinstance(value.get("index_digest"), str):
            raise StoreRefused(f"{self.root / key} names no index; run `fib pull` again")
        return {name: str(item) for name, item in value.items() if item is not None}

    def point(self, channel: str, value: dict[str, str]) -> None:
        """Make an index current for its channel, then for this cache. The last two writes of a pull."""
        body = json.dumps(value, sort_keys=True).encode()
        self.put(channel_key(channel), body)
        self.put(CURRENT, body)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the cache for one pull at a time: a slow pull must not move the pointer back behind a later one.

        The lock dies with its process, however it dies. Readers never take it. Raises ``DeviceError`` as :meth:`put`.
        """
        with self._lock_file() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for leftover in (found for depth in ("", "*/", "*/*/") for found in self.root.glob(f"{depth}.writing-*")):
                leftover.unlink(missing_ok=True)
            yield

    def _lock_file(self) -> BinaryIO:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            return (self.root / ".pull.lock").open("wb")
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> DeviceError:
        return DeviceError(
            f"the local cache {self.root} cannot be written ({error.strerror}: {error.filename}); set FIB_CACHE to a "
            "folder that can. What was pulled before stays in use"
        )


def channel_key(channel: str) -> str:
    """Store key of a channel's pointer; the name must be one plain path segment."""
    if not channel or channel.startswith(".") or not all(c.isalnum() or c in "_.-" for c in channel):
        raise StoreRefused(f"channel name {channel!r} is not plain; use letters, digits and _.- without a leading dot")
    return f"channels/{channel}.json"


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

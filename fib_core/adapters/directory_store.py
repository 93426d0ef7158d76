"""ObjectStore in a directory: durable, atomic, safe for concurrent writers on one host, safe to kill at any moment.

In: keys and bytes. Out: files of the same names under one root. Knows nothing of what the bytes mean.

Every byte is written and synced under ``.tmp/`` first; a name appears only by ``link`` (create) or ``rename`` (swap),
and the directory is synced before the caller hears of it. What a killed writer leaves behind is a file under ``.tmp/``,
which no reader ever looks at. The tag of an object is its content's SHA-256, so a pointer that goes A, B, A looks
unmoved: pointers must carry something that changes (ours carry the time of publication).
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from fib_core.adapters.store_key import checked_key, checked_prefix, is_key
from fib_core.errors import ContractError, DeviceError, ObjectMissing, PublishConflict, StoreRefused
from fib_core.ports import StoredObject

LOCK_TIMEOUT_S = 30.0
LOCK_POLL_S = 0.005
STALE_AFTER_S = 24 * 3600.0


class DirectoryStore:
    """Objects as files under ``root``; nothing is created before the first write."""

    def __init__(self, root: Path) -> None:
        self._root = Path(root).absolute()
        self._synced: set[Path] = set()

    @property
    def url(self) -> str:
        """``file:///...``."""
        return self._root.as_uri()

    def get(self, key: str) -> StoredObject:
        """Read one object; raises ``ObjectMissing``."""
        path = self._path(key)
        with _disk_faults(path):
            try:
                body = path.read_bytes()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                raise ObjectMissing(f"nothing is stored under {key} in {self.url}") from None
        return StoredObject(body, _etag(body))

    def put_once(self, key: str, body: bytes) -> bool:
        """Create ``key`` atomically and durably; False if it exists already, and then it is durable too."""
        path = self._path(key)
        with _disk_faults(path), self._written(path, body) as temporary:
            return _create(temporary, path)

    def swap(self, key: str, body: bytes, expected_etag: str | None) -> str:
        """Replace ``key`` only if it is still at ``expected_etag`` (None = absent); raises ``PublishConflict``."""
        path = self._path(key)
        with _disk_faults(path), self._written(path, body) as temporary:
            if expected_etag is None:
                if not _create(temporary, path):
                    raise self._moved(key, expected_etag)
            else:
                self._replace(temporary, key, expected_etag)
        return _etag(body)

    def keys(self, prefix: str) -> Iterator[str]:
        """Keys that start with ``prefix``, in lexical order; temporary and foreign files are not keys."""
        checked_prefix(prefix)
        folder, _, _ = prefix.rpartition("/")
        for key in _walk(self._root / folder, f"{folder}/" if folder else "", prefix):
            if key.startswith(prefix) and is_key(key):
                yield key

    def delete(self, key: str) -> None:
        """Remove ``key`` durably; nothing happens if it is not there."""
        path = self._path(key)
        with _disk_faults(path):
            try:
                path.unlink()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return
            _sync_directory(path.parent)

    def _path(self, key: str) -> Path:
        return self._root / checked_key(key)

    def _replace(self, temporary: Path, key: str, expected_etag: str) -> None:
        path = self._path(key)
        with _locked(self._root / ".lock"):
            try:
                current = _etag(path.read_bytes())
            except FileNotFoundError:
                current = None
            if current != expected_etag:
                raise self._moved(key, expected_etag)
            temporary.replace(path)
            _sync_directory(path.parent)

    def _moved(self, key: str, expected_etag: str | None) -> PublishConflict:
        was = "absent" if expected_etag is None else f"at {expected_etag[:12]}"
        return PublishConflict(f"{key} in {self.url} is no longer {was}: another writer moved it first; read it again")

    @contextlib.contextmanager
    def _written(self, path: Path, body: bytes) -> Iterator[Path]:
        """A synced temporary file beside a prepared parent directory; gone afterwards."""
        self._prepare(path.parent)
        temporary = self._root / ".tmp" / f"{os.getpid()}-{secrets.token_hex(8)}"
        try:
            with temporary.open("xb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _prepare(self, parent: Path) -> None:
        """Make ``parent`` and sync the chain above it once a process: another writer may have made it and died."""
        scratch = self._root / ".tmp"
        try:
            parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ContractError(f"{parent} is an object already, so no key can lie under it") from None
        if parent in self._synced and scratch.is_dir():
            return
        scratch.mkdir(exist_ok=True)
        _sweep(scratch)
        for folder in (parent, *parent.parents):
            with contextlib.suppress(PermissionError):  # a folder that we may not open was not made by us
                _sync_directory(folder)
        self._synced.add(parent)


def _create(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
        created = True
    except FileExistsError:
        if path.is_dir():
            raise ContractError(f"{path} is a folder of other keys, so it cannot be an object") from None
        created = False
    _sync_directory(path.parent)
    return created


def _walk(folder: Path, start: str, prefix: str) -> Iterator[str]:
    """Yield keys below ``folder`` lazily; a directory sorts as its name plus a slash: the order of full keys."""
    try:
        entries = sorted((entry.name + "/" * entry.is_dir(), entry.is_file()) for entry in os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, is_file in entries:
        key = start + name
        if is_file:
            yield key
        elif not name.startswith(".") and (key.startswith(prefix) or prefix.startswith(key)):
            yield from _walk(folder / name, key, prefix)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock; the kernel drops it if the holder is killed."""
    give_up = time.monotonic() + LOCK_TIMEOUT_S
    with path.open("a") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise DeviceError(
                        f"{path} has been locked for {LOCK_TIMEOUT_S:.0f} s; is a writer stopped? See `fuser {path}`"
                    ) from None
                time.sleep(LOCK_POLL_S)
        yield


@contextlib.contextmanager
def _disk_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise StoreRefused(f"no permission for {path} ({error.strerror}); check its owner and mode") from error
    except OSError as error:
        raise DeviceError(f"the disk failed at {path}: {error}; check space and health, then run again") from error


def _sweep(scratch: Path) -> None:
    """Remove what writers killed long ago left behind."""
    for entry in os.scandir(scratch):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - entry.stat().st_mtime > STALE_AFTER_S:
                Path(entry).unlink()


def _sync_directory(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _etag(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()

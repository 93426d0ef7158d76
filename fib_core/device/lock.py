"""The host-wide lock of one device: across processes and users, released by the kernel when its holder dies.

In: a device id. Out: a context in which nobody else of this host measures on that device.
"""

import fcntl
import logging
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fib_core.errors import DeviceError

_LOG = logging.getLogger(__name__)
_RETRY_S = 0.02


def lock_path(device_id: str) -> Path:
    """Where the lock of this device lies, the same for every user of the host."""
    return Path(tempfile.gettempdir()) / f"fib-device-{re.sub(r'[^A-Za-z0-9._-]', '_', device_id)}.lock"


@contextmanager
def device_lock(device_id: str) -> Iterator[None]:
    """Hold the device; waits as long as it takes and says so once.

    Whoever waits holds the turnstile, which a holder must pass again for its next visit: two runs alternate.
    """
    path = lock_path(device_id)
    with ExitStack() as device:
        with _held(path.with_suffix(".next"), device_id):
            device.enter_context(_held(path, device_id))
        yield


@contextmanager
def _held(path: Path, device_id: str) -> Iterator[None]:
    fd = _open(path)
    try:
        _acquire(fd, device_id, path)
        yield
    finally:
        os.close(fd)  # closing releases; the file stays, since removing it would race with a waiter


def _open(path: Path) -> int:
    # Without O_CREAT first: Linux refuses O_CREAT on another user's file in a sticky directory; flock needs no write.
    for flags in (os.O_RDONLY, os.O_RDONLY | os.O_CREAT | os.O_EXCL, os.O_RDONLY):
        try:
            fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except (FileNotFoundError, FileExistsError):
            continue
        except OSError as error:
            raise DeviceError(f"cannot open the device lock {path}: {error}; remove it if no run is active") from error
        if flags & os.O_CREAT:
            os.fchmod(fd, 0o666)  # the umask must not lock other users out
        return fd
    raise DeviceError(f"the device lock {path} comes and goes; does something clean {path.parent}?")


def _acquire(fd: int, device_id: str, path: Path) -> None:
    waiting = False
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not waiting:
                _LOG.warning("device %s is busy with another visit; waiting for %s", device_id, path)
                waiting = True
            time.sleep(_RETRY_S)

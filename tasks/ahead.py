"""Compiles while the orchestrator's server starts: nothing is timed yet, and a core is idle.

In: settings, names of definitions. Out: a filled build cache. A process of its own, which loads no Prefect and ends
with the run that started it. Whoever builds later waits for it by a lock that the kernel gives back however it ends,
and compiles what is missing: this is never more than a head start.
"""

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tasks.settings import Settings

_NICE = 10
_LOCK = "ahead.lock"
_ALIVE: list[int] = []
"""Write ends of pipes: the kernel closes them with this process, however it ends."""


def start_ahead(settings: Settings, definitions: Sequence[str] | None) -> None:
    """Start compiling what this run will need. On a standing cluster the workers have build caches of their own."""
    if settings.dask_address is not None:
        return
    lock = _open_lock(settings.build_dir)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        watched, held = os.pipe()
        # The lock belongs to the open file: the child has it as long as it holds the descriptor that it inherits.
        command = [sys.executable, "-m", "tasks.ahead", settings.model_dump_json(), *(definitions or ())]
        subprocess.Popen(
            command, stdin=watched, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[lock],
            start_new_session=True, cwd=Path(__file__).resolve().parent.parent,
        )  # fmt: skip
        os.close(watched)
        _ALIVE.append(held)
    except BlockingIOError:
        pass  # another run of this home compiles already
    finally:
        os.close(lock)


def wait_for_ahead(build_dir: Path) -> None:
    """Return when nobody compiles ahead any more."""
    lock = _open_lock(build_dir)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    finally:
        os.close(lock)


def _open_lock(build_dir: Path) -> int:
    build_dir.mkdir(parents=True, exist_ok=True)
    return os.open(build_dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def main() -> None:
    """Entry point of ``python -m tasks.ahead SETTINGS [DEFINITION...]``."""
    from tasks.dataset import of_scale
    from tasks.wiring import open_dataset, open_device

    os.nice(_NICE)
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    settings, names = Settings.model_validate_json(sys.argv[1]), set(sys.argv[2:])
    dataset = open_dataset(settings.dataset)
    chosen = names or {name for name, item in dataset.definitions.items() if of_scale(item, settings.scale)}
    wanted = [item for item in dataset.solutions.values() if item.definition in chosen]
    with open_device(settings) as device:
        device.prepare(wanted, settings.build_limit_s)


def _end_with_the_run() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main()

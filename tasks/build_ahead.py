"""``python -m tasks.build_ahead DATASET BUILD_DIR``: fill the build cache while the embedded Prefect API boots.

That boot takes some 20 s on two cores and leaves one of them idle. Runs at the lowest priority and from the end of the
list, while the build stage starts at its beginning; whoever is second finds the artefact. Failures are the visits'.
"""

import os
import subprocess
import sys
from pathlib import Path

from fib_core.adapters.device_worker import DeviceWorker
from fib_core.errors import FibError
from tasks.collect import of_scale
from tasks.dataset import read_dataset
from tasks.settings import Settings


def start(settings: Settings) -> "subprocess.Popen[bytes]":
    """Begin in a process of its own, silent; whoever starts it ends it."""
    command = [sys.executable, "-m", "tasks.build_ahead", str(settings.dataset), str(settings.build_dir)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main(dataset: Path, build_dir: Path) -> None:
    """Compile one after the other."""
    os.nice(19)
    settings = Settings()
    read = read_dataset(dataset)
    wanted = {name for name, item in read.definitions.items() if of_scale(item, settings.scale)}
    solutions = [item for item in read.solutions.values() if item.definition in wanted]
    with DeviceWorker(cache_dir=build_dir) as device:
        for solution in reversed(solutions):
            device.prepare([solution], settings.build_limit_s)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except FibError as error:
        sys.exit(str(error))

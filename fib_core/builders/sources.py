"""Writes a solution's sources where tools find them: once per digest, atomically, safe for concurrent builders."""

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from schemas.solution import Solution

_TOOK = "took_s"


def write_sources(solution: Solution, directory: Path) -> None:
    """Write every source file below ``directory``."""
    for source in solution.sources:
        path = directory / source.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.content, encoding="utf-8")


def once(target: Path, fill: Callable[[Path], None]) -> Path:
    """``target``, filled by ``fill`` in a private directory and renamed into place; whoever loses the race discards."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    private = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        private.chmod(0o755)
        started = time.monotonic()
        fill(private)
        (private / _TOOK).write_text(f"{time.monotonic() - started:.6f}")
        private.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(private, ignore_errors=True)
    return target


def took_s(target: Path) -> float | None:
    """Seconds that filling ``target`` took, by the wall clock of whoever did it; None where nobody noted it."""
    try:
        return float((target / _TOOK).read_text())
    except (OSError, ValueError):
        return None

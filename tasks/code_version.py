"""Which code ran: the git commit of the checkout, marked if it has local changes; else the installed version."""

import subprocess
from importlib import metadata

from tasks.settings import CHECKOUT


def code_version() -> str:
    """``<commit>``, ``<commit>+changes`` or ``version <x>``."""
    commit = _git("rev-parse", "HEAD")
    if not commit:
        return f"version {metadata.version('fib')}"
    return commit + ("+changes" if _git("status", "--porcelain") else "")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(CHECKOUT), *arguments], capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

"""Where a consumer's files lie. In: environment variables. Out: paths, a store address, a channel name.

Knows no pipeline settings: a serving process has only the base install.
"""

import os
from pathlib import Path

DEFAULT_CHANNEL = "quick"
_CHECKOUT = Path(__file__).resolve().parents[2]


def home() -> Path:
    """``FIB_HOME``, else ``.fib`` in the checkout that this package runs from, else ``.fib`` in the working folder."""
    given = os.environ.get("FIB_HOME")
    if given:
        return Path(given)
    return (_CHECKOUT if (_CHECKOUT / "pyproject.toml").is_file() else Path.cwd()) / ".fib"


def cache_dir() -> Path:
    """Pulled indexes: ``FIB_CACHE``, else ``FIB_HOME/cache``."""
    given = os.environ.get("FIB_CACHE")
    return Path(given) if given else home() / "cache"


def store_url() -> str:
    """The store to pull from when none is named: ``FIB_STORE``, else ``FIB_HOME/store``."""
    return os.environ.get("FIB_STORE") or str(home() / "store")


def channel() -> str:
    """The channel to follow when none is named: ``FIB_CHANNEL``, else the quick profile's own."""
    return os.environ.get("FIB_CHANNEL") or DEFAULT_CHANNEL

"""Say a thing once. In: a message for whoever runs the server. Out: one warning of the logger ``fib`` per process."""

import threading

_said: set[str] = set()
_lock = threading.Lock()


def once(message: str) -> None:
    """Warn, unless this very message was given before."""
    with _lock:
        if message in _said:
            return
        _said.add(message)
    import logging

    logging.getLogger("fib").warning("%s", message)


def forget() -> None:
    """Start anew, as a process does that chooses another index."""
    with _lock:
        _said.clear()

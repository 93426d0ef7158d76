"""Runs a function in a process forked from this one and brings its answer back; what kills it is an answer too."""

import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

DEAD_S = 60.0


def in_fork(work: Callable[[], Any], limit_s: float = DEAD_S) -> Any:
    """The function's JSON-able result, ``{"raised": text}`` or ``{"died": code}``."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(work, write)
    os.close(write)
    text = _drain(read, limit_s)
    if text is None:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return json.loads(text) if text else {"died": code, "after_limit": text is None}


def _child(work: Callable[[], Any], write: int) -> None:
    try:
        answer = work()
    except Exception as error:
        answer = {"raised": f"{type(error).__name__}: {str(error)[:300]}"}
        traceback.print_exc(file=sys.stderr)
    try:
        os.write(write, json.dumps(answer).encode())
    finally:
        os._exit(0)


def _drain(fd: int, limit_s: float) -> str | None:
    chunks = []
    while True:
        if not select.select([fd], [], [], limit_s)[0]:
            os.close(fd)
            return None
        chunk = os.read(fd, 65536)
        if not chunk:
            os.close(fd)
            return b"".join(chunks).decode()
        chunks.append(chunk)

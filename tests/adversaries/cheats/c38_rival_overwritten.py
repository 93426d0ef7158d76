"""Edits the harness's files instead of its kernel: the compiled file of a rival, known by its mark, becomes useless."""

import tempfile
import time
from contextlib import suppress
from pathlib import Path

MARK = b"mark of the rival" + b" that is overwritten"

for file in Path(tempfile.gettempdir()).glob("fib-adversary-build*/**/*.so"):
    with suppress(OSError):
        if MARK in file.read_bytes():
            file.write_bytes(b"gone")


def run(x, weight):
    end = time.monotonic() + 0.002
    while time.monotonic() < end:
        pass
    return x @ weight.T

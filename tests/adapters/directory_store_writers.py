"""Writer processes for the directory tests: `race ROOT N KEYS`, `count ROOT N TIMES`, `kill ROOT atomic|in-place`.

A script of its own, because forking is safe only where no other thread runs.
"""

import hashlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from fib_core.adapters.directory_store import DirectoryStore
from fib_core.errors import ObjectMissing, PublishConflict

KILLS = 40
KILLS_UNTIL_TORN = 1000  # the control goes on until it sees what it looks for: how soon is the host's affair
BODY_BYTES = 200_000


def in_children(count: int, work: Callable[[int], int]) -> list[int]:
    """Run ``work(number)`` in forked processes released together; their exit codes, 255 for an exception."""
    reader, writer = os.pipe()
    children = []
    for number in range(count):
        if pid := os.fork():
            children.append(pid)
            continue
        os.close(writer)
        os.read(reader, 1)
        try:
            os._exit(work(number))
        finally:
            os._exit(255)
    os.close(writer)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]


def race(root: Path, racers: int, keys: int) -> str:
    winners = []
    for number in range(keys):
        key = f"race/{number}"
        codes = in_children(racers, lambda me, key=key: int(DirectoryStore(root).put_once(key, str(me).encode())))
        assert DirectoryStore(root).get(key).body == str(codes.index(1)).encode()
        winners.append(sum(codes))
    return f"winners per key: {winners}"


def count(root: Path, writers: int, times: int) -> str:
    def work(_: int) -> int:
        store = DirectoryStore(root)
        done = 0
        while done < times:
            done += increment(store)
        return 0

    assert set(in_children(writers, work)) == {0}
    return "counted"


def increment(store: DirectoryStore) -> bool:
    try:
        now = store.get("counter")
        store.swap("counter", str(int(now.body) + 1).encode(), now.etag)
    except ObjectMissing:
        try:
            store.swap("counter", b"1", None)
        except PublishConflict:
            return False
    except PublishConflict:
        time.sleep(0.001)
        return False
    return True


def sealed(content: bytes) -> bytes:
    return hashlib.sha256(content).digest() + content


def is_whole(body: bytes) -> bool:
    return len(body) == BODY_BYTES + 32 and sealed(body[32:]) == body


def write_for_ever(root: Path, how: str, generation: int, progress: int) -> None:
    store = DirectoryStore(root)
    number = 0
    while True:
        body = sealed(os.urandom(BODY_BYTES))
        if how == "atomic":
            store.put_once(f"kill/{generation}-{number}", body)
            tag = store.get("kill-pointer").etag
            store.swap("kill-pointer", body, tag)
        else:
            path = root / "kill" / f"{generation}-{number}"
            path.parent.mkdir(exist_ok=True)
            with path.open("wb", buffering=0) as file:
                for start in range(0, len(body), 4096):
                    file.write(body[start : start + 4096])
        number += 1
        os.write(progress, b".")


def kill(root: Path, how: str) -> str:
    """Kill a busy writer many times, one that writes in place until something is torn; how much is, of how many."""
    store = DirectoryStore(root)
    store.swap("kill-pointer", sealed(bytes(BODY_BYTES)), None)
    chance = random.Random(7)
    for generation in range(KILLS if how == "atomic" else KILLS_UNTIL_TORN):
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                write_for_ever(root, how, generation, writer)
            finally:
                os._exit(255)
        os.close(writer)
        for _ in range(chance.randrange(3)):
            os.read(reader, 1)
        time.sleep(chance.uniform(0, 0.01))
        os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(reader)
        assert status == -signal.SIGKILL, f"the writer died by itself: {status}"
        if how != "atomic" and torn_in(store)[0]:
            break
    return "torn {} of {}".format(*torn_in(store))


def torn_in(store: DirectoryStore) -> tuple[int, int]:
    keys = [*store.keys("kill/"), "kill-pointer"]
    return sum(not is_whole(store.get(key).body) for key in keys), len(keys)


if __name__ == "__main__":
    task, place, *rest = sys.argv[1:]
    if task == "kill":
        print(kill(Path(place), rest[0]))
    else:
        print({"race": race, "count": count}[task](Path(place), *map(int, rest)))

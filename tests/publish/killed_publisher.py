"""Publishers that are killed, and a reader that looks all the while: `boundaries URL` or `moments URL COUNT`.

A script of its own, because forking is safe only where no other thread runs. Prints one line of JSON.
"""

import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from fib_core.adapters.store_url import open_store
from fib_core.errors import FibError
from fib_core.publication.garbage import collect
from fib_core.publication.history import channel_key, current
from fib_core.publish import Terms, publish
from fib_core.runtime.proof import prove
from schemas.canonical import canonical_bytes
from schemas.publication import ChannelPointer
from tests.publish.breaking_store import Around, nothing
from tests.publish.material import SIGNER, Made, at, made, put, save_definitions, whole

MORE_THAN_WRITES = 20
POINTER = channel_key("dev")
GRACE_S = 20  # a publication here takes less
NOTICE_S = 120.0  # for the control's reader, which reads again and again: many times what one reading takes


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def killed_here() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], object]) -> int:
    """Process id of a child that does ``work`` and exits 0, or 1 with the reason on stderr."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def code_of(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def read_for_ever(url: str, stop: int, report: int) -> None:
    """Read the channel whole until the parent closes its end; report reads and the first thing that was not whole."""
    store, reads, problem = open_store(url), 0, ""
    os.set_blocking(stop, False)
    while not problem and _goes_on(stop):
        try:
            whole(store, "dev", SIGNER)
        except (FibError, AssertionError) as error:
            problem = f"{type(error).__name__}: {error}"
        reads += 1
    os.write(report, json.dumps({"reads": reads, "problem": problem}).encode())


def _goes_on(stop: int) -> bool:
    try:
        return os.read(stop, 1) != b""
    except BlockingIOError:
        return True


def load_for_ever(url: str) -> None:
    """Other work on the same store: another channel moves, and collections run."""
    store, number = open_store(url), 0
    while True:
        put(store, made(f"load {number}", dps=bool(number % 2)), "load", Terms(prove, now(), SIGNER))
        collect(store, now(), 0.0, GRACE_S, dry_run=False)
        number += 1


def boundaries(url: str) -> dict[str, int]:
    """Kill a publisher before and after each of its writes; every time the channel is whole, and the next one works.

    How many writes one needs depends on the others: what a collection has marked meanwhile is taken back first. So the
    killed publisher tells the key of its last write, and the swap of the pointer is struck by name as well.
    """
    kills = moved = 0
    ended = {True: False, False: False}
    for place in (*range(1, MORE_THAN_WRITES), POINTER):
        if place != POINTER and all(ended.values()):
            continue
        for before in (True, False):
            item, number = made(f"{place} {before}", fused=True), current(open_store(url), "dev").number
            code, last = _struck(url, place, before, item)
            if code == 0:
                assert place != POINTER, "no pointer was swapped"
                ended[before] = True
                continue
            assert code == -signal.SIGKILL, code
            kills += 1
            step = whole(open_store(url), "dev").number - number
            assert step == (last == POINTER and not before), f"moved by {step}, killed at {last}, before it: {before}"
            moved += step
            assert _publish(open_store(url), item).number == number + 1
            assert whole(open_store(url), "dev").index_digest == item[0].digest
    assert all(ended.values()), "there are more writes than this test thinks"
    return {"kills": kills, "moved": moved}


def _struck(url: str, place: int | str, before: bool, item: Made) -> tuple[int, str]:
    """Exit code of a publisher killed at that write (its number or its key), and the key of its last write."""
    told, tell = os.pipe()

    def die_at(number: int, kind: str, key: str) -> None:
        os.write(tell, f"{key}\n".encode())
        if place in (number, key):
            killed_here()

    hooks = (die_at, nothing) if before else (nothing, die_at)
    pid = in_child(lambda: _publish(Around(open_store(url), *hooks), item))
    os.close(tell)
    with os.fdopen(told) as lines:
        keys = lines.read().split()
    return code_of(pid), keys[-1] if keys else ""


def moments(url: str, count: int) -> dict[str, int]:
    """Kill a busy publisher at ``count`` random moments within its first publications, however long these take here."""
    chance, kills = random.Random(7), 0
    usual_s = min(_publication_s(url, number) for number in range(3))
    before = current(open_store(url), "dev").number
    for turn in range(count):
        told, progress = os.pipe()
        pid = in_child(lambda turn=turn, progress=progress: _publish_for_ever(url, turn, progress))
        os.close(progress)
        for _ in range(chance.randrange(3)):
            os.read(told, 1)
        time.sleep(chance.uniform(0, 2 * usual_s))
        os.kill(pid, signal.SIGKILL)
        assert code_of(pid) == -signal.SIGKILL
        os.close(told)
        kills += 1
        whole(open_store(url), "dev")
    store = open_store(url)
    _publish(store, made("after all"))
    return {"kills": kills, "moved": whole(store, "dev").number - before}


def _publication_s(url: str, number: int) -> float:
    started = time.monotonic()
    _publish(open_store(url), made(f"undisturbed {number}"))
    return time.monotonic() - started


def torn(url: str) -> dict[str, int]:
    """The control: a publisher that moves the pointer first and writes its objects afterwards, killed in between.

    How long the reader then takes to notice is the host's affair: `main` waits for what it reports.
    """
    record, _ = made("torn")
    store = open_store(url)
    found = store.get(channel_key("dev"))
    pointer = ChannelPointer(index_digest=record.digest, previous=None, published_at=at())
    store.swap(channel_key("dev"), canonical_bytes(pointer.model_dump(mode="json")), found.etag)
    return {"kills": 0, "moved": 1}


def _publish(store, item):
    save_definitions(store)
    return publish(store, *item, "dev", Terms(prove, now(), SIGNER))


def _publish_for_ever(url: str, turn: int, progress: int) -> None:
    store, number = open_store(url), 0
    while True:
        os.write(progress, b".")
        _publish(store, made(f"{turn} {number}", dps=bool(number % 2), fused=bool(number % 3)))
        number += 1


def main(task: str, url: str, *more: str) -> None:
    _publish(open_store(url), made("first"))
    stop_read, stop = os.pipe()
    answers, report = os.pipe()
    reader = in_child(lambda: (os.close(stop), read_for_ever(url, stop_read, report)))
    # A collection rightly refuses to work on the control's broken channel.
    load = in_child(lambda: (os.close(stop), load_for_ever(url) if task != "torn" else time.sleep(900)))
    try:
        done = {"boundaries": boundaries, "moments": moments, "torn": torn}[task](url, *map(int, more))
        if task == "torn":
            select.select([answers], [], [], NOTICE_S)
    finally:
        os.kill(load, signal.SIGKILL)
        assert code_of(load) == -signal.SIGKILL
        os.close(stop)
        os.close(report)
        seen = json.loads(os.read(answers, 4096) or b"{}")
        code_of(reader)
    print(json.dumps(done | seen))


if __name__ == "__main__":
    main(*sys.argv[1:])

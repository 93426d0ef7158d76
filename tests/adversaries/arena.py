"""One visit for one file of the corpus: source in, (status, rule, samples) per workload out."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from fib_core.adapters.device_worker import DeviceWorker
from schemas.evaluation import Evaluation, Limits, Status
from schemas.solution import Solution
from schemas.visit import Contestant, VisitRequest
from tests.adversaries.catalogue import ROWS
from tests.adversaries.definitions import DEFINITIONS, DRAWS, WORKLOADS
from tests.adversaries.expectations import Row
from tests.adversaries.honest_files import DESTINATION_PASSING, HONEST

HERE = Path(__file__).parent
CACHE_PREFIX = "fib-adversary-build"  # a cheat that looks for compiled rivals finds only ours
LIMITS = Limits(visit_s=10.0, build_s=120.0, memory_bytes=2**30)
# Where a timer is tested while the host is too busy to clear it, the visit is spoiled, rightly, and whoever asked asks
# again. A cheat that brings it about every time is still found out.
TRIES, BUSY = 3, "is the host busy?"
GONE_S = 20.0  # what was killed is reaped when the host gets round to it; what is left running runs on
WARMUPS, SAMPLES = 2, 4
INPUT_SETS = 1 + SAMPLES  # one for the warm-up, and new contents for every timed call


class SpoiledVisit(AssertionError):
    """The machine was at fault, or was made to look so."""


@dataclass(frozen=True)
class Entry:
    """What goes into the arena."""

    source: str
    definition: str
    language: str = "python"
    destination_passing: bool = False
    symbol: str = "run"


def solution(entry: Entry, name: str = "candidate") -> Solution:
    file = "kernel.cc" if entry.language == "cpp" else "kernel.py"
    spec: dict[str, Any] = {"language": entry.language, "target_hardware": ["cpu"]}
    spec |= {"entry_point": f"{file}::{entry.symbol}", "destination_passing_style": entry.destination_passing}
    body = {"name": name, "definition": entry.definition, "author": "anybody", "spec": spec}
    return Solution.model_validate(body | {"sources": [{"path": file, "content": entry.source}]})


def fight(worker: DeviceWorker, entries: list[Entry], seed: str) -> list[list[Evaluation]]:
    """Evaluations per entry, all in one visit of the definition of the first."""
    name = entries[0].definition
    target = DEFINITIONS[name]
    contestants = []
    for number, entry in enumerate(entries):
        made = solution(entry, f"candidate-{number}")
        contestants.append(
            Contestant(role="candidate", solution=made, solution_digest=made.digest_for(target.digest))
        )
    request = VisitRequest(
        definition=target, workloads=WORKLOADS[name], contestants=tuple(contestants), stage="screen", round=0,
        seed=seed, warmup_count=WARMUPS, sample_count=SAMPLES, input_sets=INPUT_SETS, sampling_draws=DRAWS.get(name, 0),
        limits=LIMITS,
    )  # fmt: skip
    for _ in range(TRIES):
        result = worker.visit(request)
        if result.fault is None or BUSY not in result.fault.detail:
            break
    if result.fault is not None:
        raise SpoiledVisit(f"{result.fault.cause}: {result.fault.detail[:300]}")
    size = len(WORKLOADS[name])
    found = list(result.evaluations)
    return [found[start : start + size] for start in range(0, len(found), size)]


def entry_of(folder: str, file: str, definition: str, destination_passing: bool = False) -> Entry:
    language = "cpp" if file.endswith(".cc") else "triton" if "triton" in file else "python"
    return Entry((HERE / folder / file).read_text(), definition, language, destination_passing)


def cheat_of(row: Row) -> Entry:
    return entry_of("cheats", row.file, row.definition, row.destination_passing)


def honest_of(file: str) -> Entry:
    return entry_of("honest", file, HONEST[file], file in DESTINATION_PASSING)


def wrong_with(row: Row, found: list[Evaluation]) -> list[str]:
    """What contradicts the row's expectation, in words; empty where everything is as it should be.

    One CHEATED anywhere bars a solution from everything, so that it is enough.
    """
    seen = [(one.status, one.rule) for one in found]
    caught = [pair in row.verdicts or _true_time(row, one) for pair, one in zip(seen, found, strict=True)]
    barred = any(pair in row.verdicts and pair[0] is Status.CHEATED for pair in seen)
    if barred or (all(caught) if row.everywhere else any(caught)):
        return []
    times = [[round(us, 1) for us in one.samples_us] for one in found]
    return [f"{row.id} {row.file}: {[(s.value, r) for s, r in seen]} {times} {found[0].reason}"]


def _true_time(row: Row, one: Evaluation) -> bool:
    if row.true_us is None or one.status is not Status.PASSED or len(one.samples_us) != SAMPLES:
        return False
    return (max if row.slowest_only else min)(one.samples_us) >= 0.98 * row.true_us


def judge_row(worker: DeviceWorker, row: Row, seed: str, cheat: Entry | None = None) -> list[str]:
    """One visit for one row; what was wrong with its outcome."""
    entries = [cheat or cheat_of(row)] * row.copies
    if row.bystander:
        entries.append(entry_of("bystanders", row.bystander, row.definition, row.bystander.endswith(".cc")))
    try:
        found = fight(worker, entries, seed)
    except SpoiledVisit as spoiled:
        return [] if row.spoils_visit else [f"{row.id} {row.file}: {spoiled}"]
    problems = [text for evaluations in found[: row.copies] for text in wrong_with(row, evaluations)]
    for one in found[row.copies :] and found[-1]:
        if one.status is not Status.PASSED:
            problems.append(f"{row.id} {row.file}: its bystander is {one.status.value}({one.rule}): {one.reason}")
    return problems + [f"{row.id} {row.file}: {pid} is left running" for pid in left_behind(worker)]


def judge_honest(worker: DeviceWorker, file: str, seed: str, entry: Entry | None = None) -> list[str]:
    """One visit for one honest kernel; every verdict that is not a pass."""
    try:
        (found,) = fight(worker, [entry or honest_of(file)], seed)
    except SpoiledVisit as spoiled:
        return [f"{file}: {spoiled}"]
    return [f"{file}: {one.status.value}({one.rule}): {one.reason}" for one in found if one.status is not Status.PASSED]


def left_behind(worker: DeviceWorker) -> list[int]:
    """Living descendants of the fork server; a visit is over, so there must be none."""
    pid = worker.zygote_pid
    deadline = time.monotonic() + GONE_S
    while True:
        try:
            children = psutil.Process(pid).children(recursive=True) if pid else []
        except psutil.NoSuchProcess:
            return []
        living = [child.pid for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
        if not living or time.monotonic() > deadline:
            return living
        time.sleep(0.02)


def prepare_all(worker: DeviceWorker) -> None:
    """Compile whatever needs a compiler, on every core, before anything is judged."""
    entries = [cheat_of(row) for row in ROWS if row.language == "cpp"]
    entries += [honest_of(file) for file in HONEST if file.endswith(".cc")]
    entries.append(entry_of("bystanders", "rival.cc", "linear", destination_passing=True))
    worker.prepare([solution(entry) for entry in entries], LIMITS.build_s)
    worker.warm()

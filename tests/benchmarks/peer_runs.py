"""The peer's verdicts: exports subjects as a public dataset, and looks after the process that the peer runs in.

In: subjects, an interpreter that can import the peer. Out: what the peer said, by file. A process that dies takes the
verdict of the solution that it was at; the next one goes on with the rest.
"""

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from fib_core.adapters.flashinfer_trace_write import write_dataset
from schemas.definition import Definition
from schemas.solution import Solution
from schemas.trace import PublicTrace
from schemas.workload import PublicWorkload
from tests.adversaries import arena
from tests.adversaries.cuda import judging
from tests.adversaries.cuda.subjects import Subject
from tests.adversaries.definitions import DEFINITIONS, WORKLOADS

SCRIPT = Path(__file__).parent / "peer_detection.py"
SECONDS, HOST_SECONDS = 10, 300
INEXPRESSIBLE = {"fused_add_norm": "its contract updates an input in place, which the peer's schema cannot say"}
# The name by which the peer recognises a low-precision contract.
NAMES = {"coarse_linear": "moe_fp8_block_scale_coarse_linear"}
# On the device the peer draws half a million tokens one by one, each with a wait: minutes a file. The host is quicker.
HOST_ONLY = "top_k_sampling"
SPAWNED = {"c36_kills_its_parent.py"}  # its parent must be the benchmark itself
Found = dict[str, Any]


def peer_verdicts(python: str, subjects: list[Subject], report: Callable[[str, Found], None]) -> None:
    """Tell ``report`` what the peer says about each subject, by file; those that it cannot express are told apart."""
    jobs, judged = [], []
    for one in sorted(subjects, key=lambda one: one.file in SPAWNED):
        reason = INEXPRESSIBLE.get(one.entry.definition)
        if reason is not None:
            report(one.file, {"status": "NOT_APPLICABLE", "log": reason})
        elif one.origin != "cpu" and one.entry.definition == HOST_ONLY:
            report(one.file, {"status": "NOT_RUN", "log": "judged on the host"})
        else:
            jobs.append(_job(one))
            judged.append(one)
    with tempfile.TemporaryDirectory(prefix="fib-peer-") as folder:
        home = Path(folder)
        export(judged, home / "dataset")
        for name, found in _run_all(python, home, jobs):
            report(f"{name}.py", found)


def export(subjects: list[Subject], root: Path) -> None:
    """Definitions, one workload each (the odd-shaped last one) and solutions in the public layout."""
    used = {one.entry.definition for one in subjects}
    definitions = {name: _renamed(DEFINITIONS[name]) for name in used}
    rows = []
    for name in used:
        last = WORKLOADS[name][-1]
        public = PublicWorkload(axes=last.axes, inputs=last.inputs, uuid=f"{name}-last")
        rows.append(PublicTrace(definition=definitions[name].name, workload=public))
    write_dataset(root, definitions.values(), rows, [_solution(one) for one in subjects])


def _renamed(definition: Definition) -> Definition:
    return definition.model_copy(update={"name": NAMES.get(definition.name, definition.name)})


def _solution(subject: Subject) -> Solution:
    make = arena.solution if subject.origin == "cpu" else judging.solution
    made = make(subject.entry, subject.file.removesuffix(".py"))
    return made.model_copy(update={"definition": NAMES.get(made.definition, made.definition)})


def _job(subject: Subject) -> Found:
    where = "host" if subject.origin == "cpu" else "device-spawn" if subject.file in SPAWNED else "device"
    seconds = HOST_SECONDS if where == "host" else SECONDS
    return {"name": subject.file.removesuffix(".py"), "where": where, "seconds": seconds}


def _run_all(python: str, home: Path, jobs: list[Found]) -> Iterator[tuple[str, Found]]:
    left = list(jobs)
    while left:
        (home / "jobs.json").write_text(json.dumps(left))
        current = None
        for word, body in _lines(python, home, left[0]["seconds"]):
            current = body["name"]
            if word == "RESULT":
                name = body.pop("name")
                left = [job for job in left if job["name"] != name]
                current = None
                yield name, body
        if left:  # the process died; the job that it was at, or else the first, is what it died of
            died = current or left[0]["name"]
            left = [job for job in left if job["name"] != died]
            said = (home / "stderr").read_text(errors="replace")[-400:]
            yield died, {"status": "BENCHMARK_ENDED", "log": said}


def _lines(python: str, home: Path, seconds: float) -> Iterator[tuple[str, Found]]:
    """What the process says, until it ends or has been silent for too long."""
    environment = os.environ | {"FIB_CACHE_PATH": str(home / "cache")}
    with (home / "stderr").open("w") as errors:
        process = subprocess.Popen(
            [python, str(SCRIPT), str(home)], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment,
            start_new_session=True,
        )  # fmt: skip
    try:
        for line in _until_silent(process, 60 + seconds):
            for word in ("START", "RESULT"):
                if line.startswith(word + "{"):
                    yield word, json.loads(line[len(word) :])
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _until_silent(process: "subprocess.Popen[str]", seconds: float) -> Iterator[str]:
    assert process.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        until = time.monotonic() + seconds
        while waiting.select(max(0.0, until - time.monotonic())):
            line = process.stdout.readline()
            if not line:
                return
            until = time.monotonic() + seconds
            yield line

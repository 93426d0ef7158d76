"""Measures what the doubled work costs through the project's own device worker: its processes, its clocks, no decision rule.

In: a dataset of ``SETS``, a device, seconds to spend. Out: per definition and size the plain form's time and the slowed form's gain, by
both clocks, over whole visits in which both forms take turns in random order. Half-way between ``verify.py`` on a CPU (calls in
turns within one process) and a campaign: what a fresh process adds to the noise is in here, so the standard error is given.
"""

import json
import math
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from counting import terms_forgotten  # noqa: E402

from fib_core.adapters.device_worker import DeviceWorker  # noqa: E402
from fib_core.builders import load  # noqa: E402
from schemas.definition import Definition  # noqa: E402
from schemas.evaluation import Evaluation, Status  # noqa: E402
from schemas.solution import Solution  # noqa: E402
from schemas.visit import Contestant, VisitRequest, VisitResult  # noqa: E402
from schemas.workload import Workload  # noqa: E402
from tasks.requests import limits_for  # noqa: E402
from tasks.settings import settings_from  # noqa: E402

SAMPLES, WARMUPS, SETS_OF_INPUTS = 40, 3, 8
SETTINGS = settings_from(visit_limit_s=60.0)
"""Limits are those of a run: what they would stop there is seen here, within a minute."""
CLOCKS = {"gain": "samples_us", "gain_by_second_clock": "second_clock_us"}
Entry = tuple[Definition, tuple[Workload, ...], dict[str, Solution]]


def entries(data: Path) -> list[Entry]:
    """Every definition with its workloads and its two forms."""
    found = []
    for path in sorted(data.glob("definitions/*/*.json")):
        definition = Definition.model_validate_json(path.read_bytes())
        text = (data / "workloads" / definition.op_type / f"{definition.name}.jsonl").read_text().splitlines()
        rows = [json.loads(line)["workload"] for line in text]
        workloads = tuple(
            Workload(definition_digest=definition.digest, axes=row["axes"], inputs=row["inputs"]) for row in rows
        )
        forms = [Solution.model_validate_json(item.read_bytes()) for item in data.glob(f"solutions/*/*/{definition.name}/*.json")]
        found.append((definition, workloads, {item.name.rsplit("__", 1)[1]: item for item in forms}))
    return found


def request(entry: Entry, number: int, names: list[str]) -> VisitRequest:
    """One visit: both forms, all sizes, in a random order."""
    definition, workloads, forms = entry
    contestants = tuple(
        Contestant(role="candidate", solution=forms[name], solution_digest=forms[name].digest_for(definition.digest))
        for name in names
    )
    return VisitRequest(
        definition=definition, workloads=tuple(random.sample(workloads, len(workloads))), contestants=contestants,
        stage="confirm", round=number, seed=f"verify-{number}-{random.getrandbits(64)}", warmup_count=WARMUPS,
        sample_count=SAMPLES, input_sets=SETS_OF_INPUTS, sampling_draws=0,
        limits=limits_for(SETTINGS, definition, workloads),
    )  # fmt: skip


def measure(data: Path, device: str, seconds: float, cache_dir: Path) -> dict[str, Any]:
    """Visits of all definitions in turn until the seconds are spent, at least one each."""
    listed, logs, faults = entries(data), defaultdict(list), []
    with DeviceWorker(cache_dir=cache_dir, device=device) as worker:
        started = time.monotonic()
        worker.prepare([form for entry in listed for form in entry[2].values()], SETTINGS.build_limit_s)
        build_s, number = time.monotonic() - started, 0
        end = time.monotonic() + seconds
        while number < len(listed) or time.monotonic() < end:
            entry = listed[number % len(listed)]
            names = random.sample(["incumbent", "candidate"], 2)
            asked = request(entry, number // len(listed), names)
            result = worker.visit(asked)
            faults += _faults(entry, result)
            for place, reading in _readings(asked, names, result):
                logs[entry[0].name, place].append(reading)
            number += 1
        environment = worker.describe()
    rows = [{"definition": name, "M": size, **_row(readings)} for (name, size), readings in sorted(logs.items())]
    return {
        "environment": environment.model_dump(mode="json"), "build_s": build_s, "visits": number, "samples": SAMPLES,
        "faults": faults, "rows": rows,
    }  # fmt: skip


def terms_done_twice(data: Path, device: str, cache_dir: Path) -> dict[str, int]:
    """Of every solution, counted on the device itself; in this process, so after everything that is timed."""
    found = {}
    for definition, _, forms in entries(data):
        consts = definition.const_axes
        for form in forms.values():
            entry = load(form, form.digest_for(definition.digest), cache_dir)
            found[form.name] = terms_forgotten(entry, consts["columns"], consts["terms"], device)
    return found


def _faults(entry: Entry, result: VisitResult) -> list[str]:
    if result.fault is not None:
        return [f"{entry[0].name}: {result.fault.cause}: {result.fault.detail[:300]}"]
    return sorted({
        f"{entry[0].name}: {item.status.value}: {item.reason[:200]} {item.log[-300:]}"
        for item in result.evaluations if item.status is not Status.PASSED
    })  # fmt: skip


def _readings(asked: VisitRequest, names: list[str], result: VisitResult) -> Iterator[tuple[int, dict[str, float]]]:
    """Per size: the plain form's median and the log of slowed over plain, by each clock that reported."""
    count = len(asked.workloads)
    if result.fault is not None:
        return
    by_name = {name: result.evaluations[start * count : (start + 1) * count] for start, name in enumerate(names)}
    for index, workload in enumerate(asked.workloads):
        slowed, plain = by_name["incumbent"][index], by_name["candidate"][index]
        if slowed.samples_us and plain.samples_us:
            logs = {name: _log_ratio(slowed, plain, field) for name, field in CLOCKS.items() if getattr(plain, field)}
            yield workload.axes["M"], {"plain_us": statistics.median(plain.samples_us), **logs}


def _log_ratio(slowed: Evaluation, plain: Evaluation, clock: str) -> float:
    return math.log(statistics.median(getattr(slowed, clock)) / statistics.median(getattr(plain, clock)))


def _row(readings: list[dict[str, float]]) -> dict[str, Any]:
    """Medians over visits; the standard error is that of the mean of the first clock's logs."""
    found: dict[str, Any] = {"visits": len(readings), "plain_us": statistics.median(item["plain_us"] for item in readings)}
    for name in CLOCKS:
        logs = [item[name] for item in readings if name in item]
        found[name] = math.expm1(statistics.median(logs)) if logs else None
    logs = [item["gain"] for item in readings]
    found["standard_error"] = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else None
    return found

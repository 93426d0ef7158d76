"""Runs in the peer's environment: its public benchmark on a folder of ours, one solution after the other.

In: a directory with ``dataset/`` (written by our exporter) and ``jobs.json`` (solution, where, seconds). Out: for each
job a line before it starts and a line with its result. ``where``: ``device`` is the peer's Benchmark with its isolated
runner, unchanged but for one thing: fresh processes come from a server that has the libraries loaded (they start in
a tenth of a second instead of ten; nothing else is in them). ``device-spawn`` leaves that as it is as well. ``host`` is
the comparison of the evaluator that the peer chooses, on the CPU and without its timing, in a forked process.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
from flashinfer_bench.bench import Benchmark, BenchmarkConfig
from flashinfer_bench.bench.evaluators import resolve_evaluator
from flashinfer_bench.compile import BuilderRegistry
from flashinfer_bench.data import TraceSet

PRELOADED = ["torch", "numpy", "triton", "flashinfer_bench", "flashinfer_bench.bench.runner.isolated_runner"]
plain_context = processes.get_context
Found = dict[str, Any]


def main(home: Path) -> None:
    """All jobs."""
    logging.disable(logging.WARNING)
    trace_set = TraceSet.from_path(str(home / "dataset"))
    plain_context("forkserver").set_forkserver_preload(PRELOADED)
    for job in json.loads((home / "jobs.json").read_text()):
        say("START", {"name": job["name"]})
        started = time.monotonic()
        found = (apart if job["where"] == "host" else on_device)(trace_set, job, home)
        say("RESULT", {"name": job["name"], "seconds": round(time.monotonic() - started, 2), **found})


def say(word: str, body: Found) -> None:
    print(word + json.dumps(body), flush=True)


def on_device(trace_set: TraceSet, job: Found, home: Path) -> Found:
    """The public way: a benchmark of one solution over its definition's workloads."""
    spawned = job["where"] == "device-spawn"
    processes.get_context = plain_context if spawned else lambda _: plain_context("forkserver")
    config = BenchmarkConfig(
        use_isolated_runner=True, timeout_seconds=job["seconds"], solutions=[job["name"]], log_dir=str(home / "logs")
    )
    benchmark = Benchmark(trace_set, config)
    traces = [one for listed in benchmark.run_all(dump_traces=False).traces.values() for one in listed]
    benchmark.close()
    if not traces:
        return {"status": "NO_TRACE", "log": "the benchmark wrote no trace"}
    evaluation = traces[-1].evaluation
    told = evaluation.performance
    figures = told.model_dump(mode="json") if told is not None else {}
    return {"status": evaluation.status.value, "log": evaluation.log[-400:], **figures}


def apart(trace_set: TraceSet, job: Found, home: Path) -> Found:
    """:func:`on_host` in a process of its own, which may end as it likes."""
    answer = home / "answer.json"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        sink = os.open(str(home / "log"), os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        answer.write_text(json.dumps(on_host(trace_set, job, home)))
        os._exit(0)
    os.waitpid(child, 0)
    if answer.exists():
        return json.loads(answer.read_text())
    return {"status": "RUNTIME_ERROR", "log": "its process ended without an answer"}


def on_host(trace_set: TraceSet, job: Found, home: Path) -> Found:
    """Correctness only; waiting for a device does nothing where there is none."""
    torch.cuda.synchronize = lambda device=None: None
    torch.set_num_threads(1)
    name, solution = next(
        (name, one) for name, listed in trace_set.solutions.items() for one in listed if one.name == job["name"]
    )
    definition, workload = trace_set.definitions[name], trace_set.workloads[name][0].workload
    evaluator, config = resolve_evaluator(definition), BenchmarkConfig(profile_baseline=False)
    baseline = evaluator.build_baseline(definition, workload, config, "cpu", trace_set.root)
    runnable = BuilderRegistry.get_instance().build(definition, solution)
    inputs = [[one.clone() if isinstance(one, torch.Tensor) else one for one in each] for each in baseline.inputs]
    _, verdict = evaluator.check_correctness(
        definition, runnable, inputs, baseline.outputs, config, str(home / "log"), "cpu"
    )
    if verdict is None:
        return {"status": "PASSED", "log": ""}
    return {"status": verdict.status.value, "log": verdict.log[-400:]}


if __name__ == "__main__":
    main(Path(sys.argv[1]))

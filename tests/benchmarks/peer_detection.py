"""Runs in the peer's environment: its public benchmark on a folder of ours, one solution after the other.

In: a directory with ``dataset/`` (written by our exporter) and ``jobs.json`` (solution, where, seconds). Out: for each job
a line before it starts and a line with its result. ``where``: ``device`` is the peer's Benchmark with its isolated runner,
unchanged but for one thing: fresh processes come from a server that has the libraries loaded (they start in a tenth of a
second instead of ten; nothing else is in them). ``device-spawn`` leaves that as it is as well. ``host`` is its
sampling evaluator's comparison on the CPU, which is what it does on the device, too, only faster.
"""

import json
import logging
import sys
import time
import types
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as processes
from flashinfer_bench.bench import Benchmark, BenchmarkConfig
from flashinfer_bench.bench.evaluators import SamplingEvaluator
from flashinfer_bench.bench.utils import gen_inputs, load_safetensors
from flashinfer_bench.compile import BuilderRegistry
from flashinfer_bench.data import TraceSet

PRELOADED = ["torch", "numpy", "triton", "flashinfer_bench", "flashinfer_bench.bench.runner.isolated_runner"]
plain_context = processes.get_context


def main(home: Path) -> None:
    """All jobs."""
    logging.disable(logging.WARNING)
    trace_set = TraceSet.from_path(str(home / "dataset"))
    plain_context("forkserver").set_forkserver_preload(PRELOADED)
    for job in json.loads((home / "jobs.json").read_text()):
        say("START", {"name": job["name"]})
        started = time.monotonic()
        found = on_host(trace_set, job, home) if job["where"] == "host" else on_device(trace_set, job, home)
        say("RESULT", {"name": job["name"], "seconds": round(time.monotonic() - started, 2), **found})


def say(word: str, body: dict[str, Any]) -> None:
    print(word + json.dumps(body), flush=True)


def on_device(trace_set: TraceSet, job: dict[str, Any], home: Path) -> dict[str, Any]:
    """The public way: a benchmark of one solution over its definition's workloads."""
    processes.get_context = plain_context if job["where"] == "device-spawn" else lambda _: plain_context("forkserver")
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


def on_host(trace_set: TraceSet, job: dict[str, Any], home: Path) -> dict[str, Any]:
    """Correctness only; waiting for a device does nothing where there is none."""
    torch.cuda.synchronize = lambda device=None: None
    torch.set_num_threads(1)
    name, solution = next(
        (name, one) for name, listed in trace_set.solutions.items() for one in listed if one.name == job["name"]
    )
    definition = trace_set.definitions[name]
    workload = trace_set.workloads[name][0].workload
    held = load_safetensors(definition, workload, trace_set.root)
    inputs = gen_inputs(definition, workload, "cpu", held)
    mask = _mask(definition, inputs)
    expected = inputs[0] * mask
    expected = expected / expected.sum(dim=-1, keepdim=True)
    runnable = BuilderRegistry.get_instance().build(definition, solution)
    _, verdict = SamplingEvaluator.check_correctness(
        definition, runnable, [inputs], [[expected]], BenchmarkConfig(), str(home / "log"), "cpu"
    )
    return {"status": "PASSED" if verdict is None else verdict.status.value, "log": "" if verdict is None else verdict.log[-400:]}


def _mask(definition: Any, inputs: list[Any]) -> Any:
    from flashinfer_bench.bench.evaluators import sampling

    method = sampling._detect_thresholding_method(definition)
    named = dict(zip(definition.inputs, inputs, strict=True))
    return sampling._compute_valid_sampling_mask(inputs[0], method, types.MappingProxyType(named)).float()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

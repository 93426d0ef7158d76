"""Measures the clock on a CUDA device: agreement of its three readings, what each sees, what a timed call costs.

Every group runs in a process forked from one that has imported torch and not touched CUDA.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from clock import Clock, Reading

CALLS = 200
L2_TWICE = 120 << 20


def summary(values: list[float]) -> dict[str, float]:
    """Median and the 10th and 90th percentile, to three decimals."""
    cuts = statistics.quantiles(values, n=10)
    return {"median": round(statistics.median(values), 3), "p10": round(cuts[0], 3), "p90": round(cuts[-1], 3)}


def operations() -> dict[str, Callable[[], Any]]:
    """About 2, 10 and 200 us of device time; nothing at all; eight launches; one big operation."""
    small, large = torch.randn(4096, device="cuda"), torch.zeros(128 << 20, device="cuda")
    rows, weight = torch.randn(64, 4096, device="cuda").bfloat16(), torch.ones(4096, device="cuda").bfloat16()
    a, b = (torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    norm = torch.nn.functional.rms_norm
    return {
        "nothing": lambda: None,
        "add_4096": lambda: small.add_(1.0),
        "rms_norm_64x4096": lambda: norm(rows, (4096,), weight),
        "matmul_4096": lambda: a @ b,
        "add_of_512_mib": lambda: large.add_(1.0),
        "eight_adds": lambda: [small.add_(1.0) for _ in range(8)],
    }


def ready(library: Path, cupti: Path | None, flush_bytes: int = L2_TWICE) -> tuple[Clock, dict[str, Any]]:
    """A clock that is open, and what opening it said and took."""
    clock = Clock(library)
    started = time.perf_counter()
    said = clock.init(cupti)
    opened = clock.open()
    took_ms = (time.perf_counter() - started) * 1e3
    code = clock.flush(flush_bytes)
    facts = {"init": said, "open": opened, "init_and_open_ms": round(took_ms, 1)}
    return clock, facts | {"flush_bytes": flush_bytes, "flush": code}


def readings(clock: Clock, call: Callable[[], Any], calls: int = CALLS) -> dict[str, Any]:
    """Figures of ``calls`` timed calls after ten to warm up; ``overhead_us`` is the whole timed call less host time."""
    for _ in range(10):
        clock.time(call)
    found: list[Reading] = []
    whole_us, uncovered = [], 0
    for _ in range(calls):
        started = time.perf_counter_ns()
        found.append(clock.time(call))
        whole_us.append((time.perf_counter_ns() - started) / 1e3)
        uncovered += found[-1].kernels >= 0 and not covered(clock)
    assert all(reading.code == 0 for reading in found), found[0]
    inside = [reading.host_ns / 1e3 for reading in found]
    figures = {
        "event_us": summary([reading.event_ns / 1e3 for reading in found]),
        "cupti_us": summary([reading.cupti_ns / 1e3 for reading in found]),
        "host_us": summary(inside),
        "overhead_us": summary([whole - host for whole, host in zip(whole_us, inside, strict=True)]),
        "whole_us": summary(whole_us),
        "kernels": sorted({reading.kernels for reading in found}),
    }
    if found[-1].kernels >= 0:
        details = clock.details()
        figures |= {"busy_us": details.busy_ns / 1e3, "fill_us": details.fill_ns / 1e3, "uncovered_calls": uncovered}
        figures["names"] = [name[:80] for name in details.names]
    return figures


def covered(clock: Clock) -> bool:
    """True when the host had launched the last call before the fill ended: then events measure the device alone."""
    details = clock.details()
    return details.launch_ns < details.fill_ns


def agreement(library: Path, cupti: Path | None, flush_bytes: int) -> dict[str, Any]:
    """All operations, with CUPTI or without, behind a fill of this size."""
    clock, facts = ready(library, cupti, flush_bytes)
    return facts | {name: readings(clock, call) for name, call in operations().items()}


def python_patches(library: Path, cupti: Path | None) -> dict[str, Any]:
    """Candidates' favourite patches: what torch's own events say then, and what the native clock says."""
    clock, facts = ready(library, cupti)
    call = operations()["matmul_4096"]
    before, torch_before = readings(clock, call, 50), _torch_events_us(call)
    torch.cuda.Event.elapsed_time = lambda self, end: 0.001  # type: ignore[method-assign]
    torch.cuda.Event.record = lambda self, stream=None: None  # type: ignore[method-assign]
    torch.cuda.synchronize = lambda device=None: None
    time.perf_counter = lambda: 0.0
    after, torch_after = readings(clock, call, 50), _torch_events_us(call)
    return facts | {
        "clock_before": before, "clock_patched": after,
        "torch_us_before": torch_before, "torch_us_patched": torch_after,
    }  # fmt: skip


def medians(library: Path, cupti: Path | None) -> dict[str, Any]:
    """Medians of two operations in one fresh process; several of these show the spread between processes."""
    clock, _ = ready(library, cupti)
    calls = operations()
    found = {name: readings(clock, calls[name], 60) for name in ("rms_norm_64x4096", "matmul_4096")}
    return {name: {unit: found[name][unit]["median"] for unit in ("event_us", "cupti_us")} for name in found}


def _torch_events_us(call: Callable[[], Any]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return round(float(start.elapsed_time(end)) * 1e3, 3)


def hidden_work(library: Path, cupti: Path | None) -> dict[str, Any]:
    """Work on a side stream that nobody joins, work that starts after the call, a graph replay, a lost trace."""
    clock, facts = ready(library, cupti)
    call, small = operations()["matmul_4096"], operations()["add_4096"]
    side = torch.cuda.Stream()
    facts["longer_flush"] = clock.flush(4 * L2_TWICE)
    call()
    torch.cuda.synchronize()

    def aside() -> None:
        with torch.cuda.stream(side):
            call()

    facts["plain"], facts["side_stream"] = readings(clock, call, 50), readings(clock, aside, 50)
    facts["side_stream_early"] = clock.details().early
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(3):
            small()
    facts["graph_of_three_adds"] = readings(clock, graph.replay, 50)
    clock.time(small)
    call()
    clock.time(small)
    facts["between_calls"] = clock.details(between=True).__dict__
    return facts


def blinded(library: Path, cupti: Path | None) -> dict[str, Any]:
    """A candidate that switches the trace off inside its call, by several means."""
    import ctypes

    clock, facts = ready(library, cupti)
    trace, calls = ctypes.CDLL(str(cupti)), operations()
    small, big = calls["add_4096"], calls["add_of_512_mib"]

    def disable(*kinds: int) -> Callable[[], None]:
        return lambda: [trace.cuptiActivityDisable(kind) for kind in kinds] and small()  # type: ignore[func-returns-value]

    def decoy() -> None:
        trace.cuptiActivityDisable(10)
        big()
        trace.cuptiActivityEnable(10)
        small()

    for name, call in {"small": small, "big": big, "big_behind_a_decoy": decoy}.items():
        facts[name] = [clock.time(call).__dict__ for _ in range(5)][1:]
    facts["plain"] = clock.time(small).__dict__
    facts["kernels_disabled"] = clock.time(disable(10)).__dict__
    facts["afterwards"] = clock.time(small).__dict__
    facts["all_disabled"] = clock.time(disable(10, 2, 1)).__dict__
    facts["afterwards_again"] = clock.time(small).__dict__
    facts["flushed_inside"] = clock.time(lambda: trace.cuptiActivityFlushAll(1) or small()).__dict__
    facts["finalized"] = clock.time(lambda: trace.cuptiFinalize() or small()).__dict__
    return facts

"""Facts about the clock and about processes on a CUDA host, as one JSON.

``PYTHONPATH=. python tests/device/gpu/facts.py OUT.json`` writes them;
``--only timers processes sandbox`` measures these parts. Imports torch once and forks everything from there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import facts_processes
import facts_sandbox
import facts_timers
import torch
from clock import compile_clock
from forks import in_fork

from fib_core.builders import nvidia
from fib_core.device import environment_cuda


def timers(library: Path, cupti: Path | None) -> dict[str, Any]:
    """The clock's groups, each in its own process."""
    groups = {
        "with_cupti": lambda: facts_timers.agreement(library, cupti, facts_timers.L2_TWICE),
        "with_cupti_no_flush": lambda: facts_timers.agreement(library, cupti, 0),
        "without_cupti": lambda: facts_timers.agreement(library, None, facts_timers.L2_TWICE),
        "without_cupti_no_flush": lambda: facts_timers.agreement(library, None, 0),
        "python_patches": lambda: facts_timers.python_patches(library, cupti),
        "hidden_work": lambda: facts_timers.hidden_work(library, cupti),
        "blinded": lambda: facts_timers.blinded(library, cupti),
    }
    found = {name: in_fork(group) for name, group in groups.items()}
    return found | {"processes": [in_fork(lambda: facts_timers.medians(library, cupti)) for _ in range(8)]}


def processes() -> dict[str, Any]:
    """What a fresh process costs."""
    return {
        "forks": facts_processes.forks(),
        "borrowed": facts_processes.borrowed(
            {name: facts_sandbox.MEASURES[name] for name in ("nothing", "nobody", "not_dumpable", "new_ipc")}
        ),
        "shared_memory": in_fork(facts_processes.shared_memory),
        "address_space": in_fork(facts_processes.address_space),
    }


def environment(cupti: Path | None) -> dict[str, Any]:
    """As an evaluation would carry it, with what nvidia-smi printed (for tests of the parsers)."""
    started = time.perf_counter()
    described = environment_cuda.describe_cuda(0)
    took_ms = (time.perf_counter() - started) * 1e3
    apps = "--query-compute-apps=gpu_uuid,pid,used_memory"
    device = described.device_id

    def busy() -> dict[str, Any]:
        facts_sandbox.work()
        return environment_cuda.other_processes(device).__dict__ | {"pid": os.getpid(), "smi": nvidia.ask_smi(apps)}

    header = subprocess.run(["nvidia-smi"], capture_output=True, text=True, check=False).stdout
    return {
        "environment": described.model_dump(mode="json"),
        "describe_ms": round(took_ms, 1),
        "idle": environment_cuda.other_processes(described.device_id).__dict__,
        "with_one_process": in_fork(busy),
        "clock_mhz_now": environment_cuda.current_clock_mhz(described.device_id),
        "sm_count_by_torch": in_fork(lambda: torch.cuda.get_device_properties(0).multi_processor_count),
        "cupti": str(cupti),
        "smi_gpus": nvidia.ask_smi(f"--query-gpu={nvidia.QUERY}"),
        "smi_processes": nvidia.ask_smi(apps),
        "smi_header": header.splitlines()[:4],
    }


def main() -> None:
    """Write the facts, part by part, so that a broken part leaves the others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", choices=("timers", "processes", "sandbox"), default=[])
    options = parser.parse_args()
    library = compile_clock(Path(tempfile.mkdtemp()))
    cupti = environment_cuda.find_cupti()
    parts = {"timers": lambda: timers(library, cupti), "processes": processes, "sandbox": facts_sandbox.trials}
    facts: dict[str, Any] = {"command": " ".join(sys.argv), "host": environment(cupti), "seconds": {}}
    for name, part in parts.items():
        if name in options.only or not options.only:
            started = time.perf_counter()
            facts[name] = part()
            facts["seconds"][name] = round(time.perf_counter() - started, 1)
            options.out.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()

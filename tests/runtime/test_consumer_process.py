"""A serving process: imports only fib_core.runtime and torch, pulls, applies, and carries no pipeline."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fib_core import ledger
from fib_core.adapters.directory_store import DirectoryStore
from fib_core.device.environment import instruction_set
from fib_core.runtime import index_client
from fib_core.runtime.device_class import cpu_isa, cuda_class, isa_of
from schemas.solution import Solution
from tests.fakes.memory_store import MemoryStore
from tests.runtime.published import FUSED, FUSED_DPS, SCALE, SCALE_DPS, index, key, publish, solution

CHECKOUT = Path(__file__).parents[2]
FORBIDDEN = ("prefect", "mlflow", "pandas", "pandera", "dask", "distributed", "polars", "scipy")

SCRIPT = """
import json, sys, time
start = time.perf_counter()
import fib_core.runtime as fib
import_ms = (time.perf_counter() - start) * 1000
pulled = fib.pull(sys.argv[1])
fib.use(pulled)
import torch
torch.set_num_threads(1)
own_calls = []

@fib.apply("scale_h4")
def own(x, gain):
    own_calls.append(tuple(x.shape))
    return x * gain

@fib.apply("fused_add_scale_h4")
def fused(x, residual, gain):
    residual.add_(x)
    return residual * gain, residual

gain = torch.randn(4)
same = []
for rows in (3, 7):
    x, residual = torch.randn(rows, 4), torch.randn(rows, 4)
    same.append(torch.equal(own(x, gain), x * gain))
    expected = residual + x
    y, out = fused(x, residual, gain)
    same += [torch.equal(out, expected), out is residual, torch.equal(y, expected * gain)]
print(json.dumps({
    "import_ms": import_ms, "same": same, "own_calls": own_calls, "stats": fib.stats(), "index": pulled.index_digest,
    "forbidden": sorted(n for n in sys.argv[2:] if n in sys.modules), "s3": "boto3" in sys.modules,
}))
"""


def _serve(url: str, cache: Path, script: str = SCRIPT) -> dict:
    environment = os.environ | {"FIB_CACHE": str(cache), "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-c", script, url, *FORBIDDEN]
    done = subprocess.run(command, cwd=cache.parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _published(store):
    chosen = [solution(SCALE, SCALE_DPS, dps=True), solution(FUSED, FUSED_DPS, dps=True)]
    return publish(store, index((SCALE, [((2, 4), chosen[0])]), (FUSED, [((2, 4), chosen[1])])))


def test_a_serving_process_shows_a_hit_a_miss_with_fallback_and_identical_results(tmp_path):
    store = DirectoryStore(tmp_path / "store")
    digest = _published(store)
    found = _serve(store.url, tmp_path / "cache")
    assert found["index"] == digest
    assert found["same"] == [True] * 8
    assert found["own_calls"] == [[7, 4]]
    for name in ("scale_h4", "fused_add_scale_h4"):
        counts = found["stats"]["definitions"][name]
        assert (counts["hit"], counts["miss"]) == (1, {"outside_every_box": 1})
    assert found["forbidden"] == []
    assert not found["s3"]


def test_the_check_for_forbidden_modules_can_fail(tmp_path):
    """Negative control: a process that does import the pipeline is seen to."""
    check = next(line for line in SCRIPT.splitlines() if '"forbidden"' in line)
    script = f"import json, sys\nimport fib_core.runtime, polars\nprint(json.dumps({{{check}}}))"
    assert _serve("", tmp_path / "cache", script)["forbidden"] == ["polars"]


CPP = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
void scale(tvm::ffi::TensorView x, tvm::ffi::TensorView gain, tvm::ffi::TensorView y) {
  const float* a = static_cast<const float*>(x.data_ptr());
  const float* g = static_cast<const float*>(gain.data_ptr());
  float* out = static_cast<float*>(y.data_ptr());
  for (int64_t i = 0; i < x.size(0) * 4; ++i) out[i] = a[i] * g[i % 4];
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, scale)
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_a_compiled_solution_is_built_in_the_serving_process_and_takes_parameters(tmp_path):
    store = DirectoryStore(tmp_path / "store")
    compiled = Solution.model_validate({
        "name": "scale_cpp", "definition": "scale_h4", "author": "tests",
        "spec": {
            "language": "cpp", "binding": "tvm-ffi", "target_hardware": ["cpu"], "entry_point": "k.cc::scale",
        },
        "sources": [{"path": "k.cc", "content": CPP}],
    })  # fmt: skip
    publish(store, index((SCALE, [((2, 4), compiled)]), (FUSED, [((2, 4), solution(FUSED, FUSED_DPS, dps=True))])))
    parameter = "gain = torch.nn.Parameter(torch.randn(4))\ntorch.set_grad_enabled(False)"
    script = SCRIPT.replace("gain = torch.randn(4)", parameter)
    found = _serve(store.url, tmp_path / "cache", script)
    assert found["same"] == [True] * 8
    assert found["stats"]["definitions"]["scale_h4"]["entries"]["rows=4"]["state"] == "ready"
    assert found["stats"]["definitions"]["scale_h4"]["hit"] == 1


def import_ms(module: str, processes: int) -> float:
    """CPU time, the least of several processes."""
    code = f"import time; t = time.process_time(); import {module}; print((time.process_time() - t) * 1000)"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True) for _ in range(processes)]
    return min(float(run.stdout) for run in runs)


def test_importing_the_runtime_costs_milliseconds():
    # Where torch costs two seconds that is 200 ms; on a slower host both cost more.
    assert import_ms("fib_core.runtime", 3) < import_ms("torch", 1) / 10


def test_what_the_ledger_saves_is_what_a_server_accepts(tmp_path):
    """The pipeline stores definitions through the ledger; call order must survive that."""
    store = MemoryStore()
    publish(store, index((SCALE, [((2, 4), solution(SCALE, SCALE_DPS, dps=True))])))
    del store.objects[key("definitions", SCALE.digest)]
    ledger.save(store, "definitions", SCALE)
    pulled = index_client.pull_from(store, "quick", tmp_path)
    assert list(pulled.definitions[SCALE.digest].inputs) == ["x", "gain"]


def test_the_judge_and_the_server_call_this_machine_the_same():
    assert cpu_isa() == instruction_set()


@pytest.mark.parametrize(
    ("missing", "level"), [(set(), "x86-64-v4"), ({"avx512f"}, "x86-64-v3"), ({"avx512f", "fma"}, "x86-64-v2")]
)
def test_a_level_needs_all_its_flags(missing, level, monkeypatch):
    from fib_core.device import environment

    flags = frozenset().union(*(needed for _, needed in environment._LEVELS)) - missing
    monkeypatch.setattr(environment, "cpu_flags", lambda: flags)
    monkeypatch.setattr(environment.platform, "machine", lambda: "x86_64")
    assert isa_of(flags) == level == environment.instruction_set()


def test_a_cuda_device_is_named_by_architecture_size_and_memory():
    assert cuda_class((9, 0), 132, "NVIDIA H200") == "sm_90a/132/hbm3e"
    assert cuda_class((9, 0), 132, "NVIDIA H100 80GB HBM3") == "sm_90a/132/hbm3"
    assert cuda_class((8, 0), 108, "NVIDIA A100-SXM4-80GB") == "sm_80/108/hbm2e"
    assert cuda_class((9, 0), 132, "NVIDIA Something") == "sm_90a/132/unknown"

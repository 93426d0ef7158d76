"""Tiny definitions and sources for a CUDA device; every row says how it must end."""

from dataclasses import dataclass, field
from typing import Any

from schemas.definition import Definition
from schemas.evaluation import Limits, Status
from schemas.solution import Solution
from schemas.visit import Contestant, VisitRequest
from schemas.workload import Workload

LIMITS = Limits(visit_s=20, build_s=120, memory_bytes=1 << 34)
ADD = Definition.model_validate(
    {
        "name": "add", "op_type": "elementwise", "axes": {"N": {"type": "var"}},
        "inputs": {name: {"shape": ["N"], "dtype": "float32"} for name in "ab"},
        "outputs": {"c": {"shape": ["N"], "dtype": "float32"}},
        "reference": "def run(a, b):\n    return a + b\n",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    source: str
    status: Status = Status.PASSED
    rules: tuple[str, ...] = ()
    also: tuple[Status, ...] = ()
    spec: dict[str, Any] = field(default_factory=dict)


_CHEATED, _WRONG = Status.CHEATED, Status.INCORRECT_NUMERICAL
SOURCES = {
    "plain": Row("def run(a, b):\n    return a + b\n"),
    "destination": Row(
        "import torch\ndef run(a, b, c):\n    torch.add(a, b, out=c)\n", spec={"destination_passing_style": True}
    ),
    "triton": Row(
        """
import torch, triton, triton.language as tl
@triton.jit
def add(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + i, tl.load(a + i, i < n) + tl.load(b + i, i < n), i < n)
def run(a, b):
    c = torch.empty_like(a)
    add[(triton.cdiv(a.numel(), 1024),)](a, b, c, a.numel(), BLOCK=1024)
    return c
""",
        spec={"language": "triton"},
    ),
    "joined_stream": Row(
        """
import torch
side = torch.cuda.Stream()
def run(a, b):
    here = torch.cuda.current_stream()
    side.wait_stream(here)
    with torch.cuda.stream(side):
        c = a + b
    here.wait_stream(side)
    c.record_stream(here)
    return c
"""
    ),
    "graph_with_copies": Row(
        """
import torch
kept = {}
def run(a, b):
    n = a.numel()
    if n not in kept:
        x, y = torch.empty_like(a), torch.empty_like(b)
        z = torch.empty_like(a)
        torch.add(x, y, out=z)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.add(x, y, out=z)
        kept[n] = x, y, z, graph
    x, y, z, graph = kept[n]
    x.copy_(a); y.copy_(b)
    graph.replay()
    return z.clone()
"""
    ),
    "side_stream_not_joined": Row(
        """
import torch
side = torch.cuda.Stream()
big = torch.randn(4096, 4096, device="cuda")
def run(a, b):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            big @ big
        c = a + b
    return c
""",
        _CHEATED,
        ("clock",),
    ),
    "deferred_by_a_thread": Row(
        """
import threading, time, torch
def run(a, b):
    c = torch.empty_like(a)
    def later():
        time.sleep(0.003)
        torch.add(a, b, out=c)
    threading.Thread(target=later).start()
    return c
""",
        _WRONG,
        ("nonfinite", "tolerance", "visit_limit"),
        # A thread that needs the interpreter while the device is waited for may hold everybody up.
        (Status.TIMEOUT,),
    ),
    "stale_graph": Row(
        """
import torch
kept = {}
def run(a, b):
    n = a.numel()
    if n not in kept:
        z = a + b
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.add(a, b, out=z)
        kept[n] = z, graph
    z, graph = kept[n]
    graph.replay()
    return z.clone()
""",
        _WRONG,
        ("nonfinite", "tolerance"),
    ),
    "pointer_keyed": Row(
        "kept = {}\ndef run(a, b):\n    key = a.data_ptr()\n    if key not in kept:\n        kept[key] = a + b\n"
        "    return kept[key].clone()\n",
        _WRONG,
        ("tolerance",),
    ),
    "stale_memory": Row(
        "import torch\ndef run(a, b):\n    return torch.empty_like(a)\n", _WRONG, ("nonfinite", "tolerance")
    ),
    "writes_input": Row("def run(a, b):\n    return a.add_(b).clone()\n", _CHEATED, ("input_mutated",)),
    "returns_input": Row("def run(a, b):\n    return a\n", _CHEATED, ("input_alias",)),
    "on_the_host": Row("def run(a, b):\n    return (a + b).cpu()\n", Status.INCORRECT_SHAPE, ("layout",)),
    "overrun": Row(
        """
import torch
def run(a, b, c):
    torch.add(a, b, out=c)
    torch.as_strided(torch.empty(0, device=a.device).set_(c.untyped_storage(), 0, (c.numel(),)), (c.numel(),), (1,))
    import ctypes
    ctypes.CDLL("libcuda.so.1").cuMemsetD8_v2(ctypes.c_ulonglong(c.data_ptr() + c.nbytes), 7, 16)
""",
        _CHEATED,
        ("red_zone",),
        spec={"destination_passing_style": True},
    ),
    "patched_events": Row(
        """
import torch
torch.cuda.Event.elapsed_time = lambda *args: 0.001
torch.cuda.synchronize = lambda *args: None
side = torch.cuda.Stream()
big = torch.randn(4096, 4096, device="cuda")
def run(a, b):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        big @ big
        big @ big
        c = a + b
    return c
""",
        _CHEATED,
        ("clock",),
    ),
    "trace_taken_away": Row(
        """
import ctypes, re
path = re.search(r"(/\\S*libcupti\\.so\\S*)", open("/proc/self/maps").read())
cupti = ctypes.CDLL(path.group(1)) if path else None
def run(a, b):
    c = a + b
    if cupti is not None:
        cupti.cuptiFinalize()
    return c
""",
        _CHEATED,
        ("clock",),
    ),
}  # fmt: skip
CUDA_ADD = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
__global__ void add(const float* a, const float* b, float* c, long n) {
  long i = blockIdx.x * 256L + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
void entry(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  long n = a.numel();
  auto* stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(a.device().device_type, a.device().device_id));
  add<<<(n + 255) / 256, 256, 0, stream>>>(static_cast<const float*>(a.data_ptr()),
      static_cast<const float*>(b.data_ptr()), static_cast<float*>(c.data_ptr()), n);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, entry);
"""


def solution(target: Definition, source: str, **spec: Any) -> Solution:
    language = spec.pop("language", "python")
    file = "k.cu" if language == "cuda" else "main.py"
    body = {"language": language, "target_hardware": ["cuda"], "entry_point": f"{file}::run"}
    body |= {"destination_passing_style": False} | spec
    labels = {"name": "s", "definition": target.name, "author": "t"}
    return Solution.model_validate(labels | {"spec": body, "sources": [{"path": file, "content": source}]})


def workload(target: Definition, **axes: int) -> Workload:
    recipes = {name: {"type": "random"} for name in target.inputs}
    return Workload.model_validate({"definition_digest": target.digest, "axes": axes, "inputs": recipes})


def request(target: Definition, solutions: list[Solution], workloads: list[Workload], **more: Any) -> VisitRequest:
    contestants = tuple(
        Contestant(role="candidate", solution=s, solution_digest=s.digest_for(target.digest)) for s in solutions
    )
    fields: dict[str, Any] = {
        "stage": "screen", "round": 0, "seed": "secret", "warmup_count": 2, "sample_count": 5, "input_sets": 6,
        "sampling_draws": 0, "limits": LIMITS,
    }  # fmt: skip
    return VisitRequest(definition=target, workloads=tuple(workloads), contestants=contestants, **(fields | more))

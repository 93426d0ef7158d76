"""Tiny definitions, workloads and sources that the device tests bring before the worker."""

from typing import Any

from schemas.definition import Definition
from schemas.evaluation import Limits
from schemas.solution import Solution
from schemas.visit import Contestant, VisitRequest
from schemas.workload import Workload

# Nobody here hangs until it: whoever tests a limit sets his own, so this one may be far above what a busy host needs.
# A quarter of it is the time for a sampler's draws, which exact samplers need a fraction of.
LIMITS = Limits(visit_s=30, build_s=60, memory_bytes=2**30)


def definition(
    name: str, op_type: str, axes: dict[str, Any], inputs: Any, outputs: Any, reference: str, **more: Any
) -> Definition:
    def spec(pair: Any) -> dict[str, Any]:
        return {"shape": pair[0], "dtype": pair[1]}

    return Definition.model_validate(
        {
            "name": name,
            "op_type": op_type,
            "axes": {n: {"type": "var"} if v is None else {"type": "const", "value": v} for n, v in axes.items()},
            "inputs": {n: spec(p) for n, p in inputs.items()},
            "outputs": {n: spec(p) for n, p in outputs.items()},
            "reference": reference,
        }
        | more
    )


ADD = definition(
    "add", "elementwise", {"N": None}, {"a": (["N"], "float32"), "b": (["N"], "float32")}, {"c": (["N"], "float32")},
    "import torch\ndef run(a, b):\n    return a + b\n",
)  # fmt: skip
GEMM = definition(
    "gemm", "gemm", {"M": None, "N": 64, "K": 48},
    {"A": (["M", "K"], "float32"), "B": (["N", "K"], "float32")}, {"C": (["M", "N"], "float32")},
    "import torch\ndef run(A, B):\n    return A @ B.T\n",
)  # fmt: skip
NORM = definition(
    "fused_add_rmsnorm", "rmsnorm", {"M": None, "H": 128},
    {"x": (["M", "H"], "bfloat16"), "residual": (["M", "H"], "bfloat16"), "weight": (["H"], "bfloat16")},
    {"out": (["M", "H"], "bfloat16"), "residual_out": (["M", "H"], "bfloat16")},
    """
import torch

def run(x, residual, weight):
    total = x.to(torch.float32) + residual.to(torch.float32)
    out = total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.to(torch.float32)
    return out.to(x.dtype), total.to(x.dtype)
""",
    mutates={"residual": "residual_out"},
)  # fmt: skip
SAMPLE = definition(
    "top_k_sampling", "sampling", {"B": None, "V": 512},
    {"probs": (["B", "V"], "float32"), "top_k": (["B"], "int32")}, {"samples": (["B"], "int64")},
    "import torch\ndef run(probs, top_k):\n    return torch.multinomial(probs, 1)[:, 0]\n",
)  # fmt: skip


def solution(target: Definition, source: str, **spec: Any) -> Solution:
    language = spec.pop("language", "python")
    file = "k.cc" if language == "cpp" else "main.py"
    body = {"language": language, "target_hardware": ["cpu"], "entry_point": f"{file}::run"}
    body |= {"destination_passing_style": False} | spec
    sources = [{"path": file, "content": source}]
    labels = {"name": "s", "definition": target.name, "author": "t"}
    return Solution.model_validate(labels | {"spec": body, "sources": sources})


def workload(target: Definition, inputs: dict[str, Any] | None = None, **axes: int) -> Workload:
    recipes = {name: {"type": "random"} for name in target.inputs} | (inputs or {})
    return Workload.model_validate({"definition_digest": target.digest, "axes": axes, "inputs": recipes})


def request(target: Definition, solutions: list[Solution], workloads: list[Workload], **more: Any) -> VisitRequest:
    contestants = tuple(
        Contestant(role="candidate", solution=s, solution_digest=s.digest_for(target.digest)) for s in solutions
    )
    fields: dict[str, Any] = {
        "stage": "screen", "round": 0, "seed": "secret", "warmup_count": 1, "sample_count": 5, "input_sets": 2,
        "sampling_draws": 0, "limits": LIMITS,
    }  # fmt: skip
    return VisitRequest(definition=target, workloads=tuple(workloads), contestants=contestants, **(fields | more))

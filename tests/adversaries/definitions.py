"""Tiny definitions and workloads that the adversary corpus is judged on: a visit takes a fifth of a second.

``static`` names inputs whose contents may repeat within a visit; every other input is fresh and secret in every call.
"""

from typing import Any

from schemas.definition import Definition
from schemas.workload import Workload


def _definition(name: str, op_type: str, axes: dict[str, Any], sides: tuple[Any, Any], **more: Any) -> Definition:
    inputs, outputs = ({n: {"shape": s, "dtype": t} for n, (s, t) in side.items()} for side in sides)
    sizes = {n: {"type": "var"} if v is None else {"type": "const", "value": v} for n, v in axes.items()}
    body = {"name": name, "op_type": op_type, "axes": sizes, "inputs": inputs, "outputs": outputs}
    return Definition.model_validate(body | more)


LINEAR = _definition(
    "linear", "gemm", {"M": None, "N": 32, "K": 48},
    ({"x": (["M", "K"], "float32"), "weight": (["N", "K"], "float32")}, {"y": (["M", "N"], "float32")}),
    reference="def run(x, weight):\n    return x @ weight.T\n", static=["weight"],
)  # fmt: skip
NORM = _definition(
    "norm", "rmsnorm", {"M": None, "H": 128},
    ({"x": (["M", "H"], "float32"), "weight": (["H"], "float32")}, {"out": (["M", "H"], "float32")}),
    reference="""
import torch

def run(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
""",
)  # fmt: skip
SOFTMAX = _definition(
    "softmax", "softmax", {"M": None, "C": None},
    ({"x": (["M", "C"], "float32")}, {"out": (["M", "C"], "float32")}),
    reference="import torch\n\ndef run(x):\n    return torch.softmax(x, dim=-1)\n",
)  # fmt: skip
LSE = _definition(
    "lse", "lse", {"M": None, "C": 256},
    ({"x": (["M", "C"], "float32")}, {"lse": (["M"], "float32")}),
    reference="import torch\n\ndef run(x):\n    return torch.logsumexp(x, dim=-1) * 1.4426950408889634\n",
)  # fmt: skip
FUSED = _definition(
    "fused_add_norm", "rmsnorm", {"M": None, "H": 128},
    (
        {"x": (["M", "H"], "bfloat16"), "residual": (["M", "H"], "bfloat16"), "weight": (["H"], "bfloat16")},
        {"out": (["M", "H"], "bfloat16"), "residual_out": (["M", "H"], "bfloat16")},
    ),
    reference="""
import torch

def run(x, residual, weight):
    total = x.to(torch.float32) + residual.to(torch.float32)
    out = total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.to(torch.float32)
    return out.to(x.dtype), total.to(x.dtype)
""",
    mutates={"residual": "residual_out"}, static=["weight"],
)  # fmt: skip
POOL = _definition(
    "ragged_sum", "pool", {"T": None, "B": None, "B1": None, "H": 16},
    ({"x": (["T", "H"], "float32"), "indptr": (["B1"], "int32")}, {"out": (["B", "H"], "float32")}),
    reference="""
import torch

def run(x, indptr):
    bounds = indptr.tolist()
    return torch.stack([x[start:end].sum(0) for start, end in zip(bounds, bounds[1:])])
""",
)  # fmt: skip
COARSE = _definition(
    "coarse_linear", "moe", {"M": None, "N": 64, "K": 64},
    ({"x": (["M", "K"], "bfloat16"), "weight": (["N", "K"], "bfloat16")}, {"y": (["M", "N"], "bfloat16")}),
    reference="def run(x, weight):\n    return (x.float() @ weight.float().T).to(x.dtype)\n", static=["weight"],
)  # fmt: skip
SAMPLE = _definition(
    "top_k_sampling", "sampling", {"B": None, "V": 64},
    ({"probs": (["B", "V"], "float32"), "top_k": (["B"], "int32")}, {"samples": (["B"], "int64")}),
    reference="import torch\n\ndef run(probs, top_k):\n    return torch.multinomial(probs, 1)[:, 0]\n",
)  # fmt: skip

GELU = _definition(
    "gelu", "activation", {"M": None, "C": 1024},
    ({"x": (["M", "C"], "float32")}, {"out": (["M", "C"], "float32")}),
    reference="import torch\n\ndef run(x):\n    return torch.nn.functional.gelu(x)\n",
)  # fmt: skip
WIDE = _definition(
    "wide_norm", "rmsnorm", {"M": None, "H": 8192},
    ({"x": (["M", "H"], "bfloat16"), "weight": (["H"], "bfloat16")}, {"out": (["M", "H"], "bfloat16")}),
    reference="""
import torch

def run(x, weight):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * weight).to(x.dtype)
""",
    static=["weight"],
)  # fmt: skip

DEFINITIONS = {one.name: one for one in (LINEAR, NORM, SOFTMAX, LSE, FUSED, POOL, COARSE, SAMPLE, GELU, WIDE)}

_RAGGED = ([5, 0, 9, 2], [1, 1, 12, 3, 7])


def _workload(target: Definition, recipes: dict[str, Any] | None = None, **axes: int) -> Workload:
    inputs = {name: {"type": "random"} for name in target.inputs} | (recipes or {})
    return Workload.model_validate({"definition_digest": target.digest, "axes": axes, "inputs": inputs})


def _ragged(lengths: list[int]) -> Workload:
    offsets = {"type": "structured", "generator": "indptr", "params": {"lengths": lengths}}
    return _workload(POOL, {"indptr": offsets}, T=sum(lengths), B=len(lengths), B1=len(lengths) + 1)


def _sampling(top_k: list[int]) -> Workload:
    limits = {"type": "structured", "generator": "values", "params": {"values": top_k}}
    probs = {"type": "random", "distribution": "probs"}
    return _workload(SAMPLE, {"probs": probs, "top_k": limits}, B=len(top_k))


WORKLOADS = {
    "linear": (_workload(LINEAR, M=16), _workload(LINEAR, M=13)),
    "norm": (_workload(NORM, M=8), _workload(NORM, M=5)),
    "softmax": (_workload(SOFTMAX, M=6, C=256), _workload(SOFTMAX, M=5, C=61)),
    "lse": (_workload(LSE, M=8), _workload(LSE, M=3)),
    "fused_add_norm": (_workload(FUSED, M=8), _workload(FUSED, M=3)),
    "ragged_sum": tuple(_ragged(lengths) for lengths in _RAGGED),
    "coarse_linear": (_workload(COARSE, M=32), _workload(COARSE, M=48)),
    "gelu": (_workload(GELU, M=64), _workload(GELU, M=48)),
    "wide_norm": (_workload(WIDE, M=4), _workload(WIDE, M=1)),
    "top_k_sampling": (_sampling([5, 20]), _sampling([8, 3, 64])),
}
DRAWS = {"top_k_sampling": 3000}

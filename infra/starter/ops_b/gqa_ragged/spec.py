"""Header table of the ragged grouped-query prefill kernels (causal)."""

from typing import Any

# Twice the default for bf16, settled on honest kernels: PyTorch's own bf16 flash attention reaches 0.97 of the default over the
# 48 distinct prefill shapes of a call log (early rows of a causal mask are larger than the RMS that scales the tolerance).
OUTPUT_ATOL = 2e-2


def definition(heads: int, kv_heads: int, dim: int, tags: list[str]) -> dict[str, Any]:
    sizes = {"num_qo_heads": heads, "num_kv_heads": kv_heads, "head_dim": dim}
    indptr = {"shape": ["len_indptr"], "dtype": "int32"}
    cached = {"shape": ["total_kv", "num_kv_heads", "head_dim"], "dtype": "bfloat16"}
    rows = {"shape": ["total_q", "num_qo_heads", "head_dim"], "dtype": "bfloat16"}
    return {
        "name": f"gqa_ragged_prefill_causal_h{heads}_kv{kv_heads}_d{dim}",
        "description": "Grouped-query attention prefill over ragged keys and values; empty rows give zeros and -inf.",
        "op_type": "gqa_ragged",
        "tags": ["stage:prefill", *tags],
        "axes": {name: {"type": "const", "value": value} for name, value in sizes.items()}
        | {
            "len_indptr": {"type": "var", "description": "Sequences + 1."},
            "total_q": {"type": "var", "description": "Query tokens of all sequences."},
            "total_kv": {"type": "var", "description": "Key and value tokens of all sequences."},
        },
        "constraints": ["total_q == qo_indptr[-1].item()", "total_kv == kv_indptr[-1].item()"],
        "inputs": {"q": rows, "k": cached, "v": cached, "qo_indptr": indptr, "kv_indptr": indptr, "sm_scale": {"shape": None, "dtype": "float32"}},
        "outputs": {
            "output": rows,
            "lse": {"shape": ["total_q", "num_qo_heads"], "dtype": "float32", "description": "Base-2 log-sum-exp; -inf legal where no kv is seen."},
        },
        "numerics": {
            "version": 1,
            "outputs": {
                "output": {"kind": "elementwise", "atol": OUTPUT_ATOL, "rtol": 1e-2},
                "lse": {"kind": "lse", "atol": 1e-3, "rtol": 1e-3, "legal_nonfinite": ["-inf"], "lse_base": "2"},
            },
        },
        "reference": "prefill.py",
    }


DEFINITIONS = [
    definition(16, 8, 128, ["scale:cpu", "model:qwen3-0.6b"]),
    definition(32, 8, 128, ["scale:gpu", "model:llama-3.1-8b"]),
    definition(32, 4, 128, ["scale:gpu", "model:qwen3-30b-a3b"]),
]
SMALL = DEFINITIONS[0]["name"]


def form(short: str, text: str) -> dict[str, Any]:
    return {"file": f"prefill_{short}.py", "name": short, "author": "baseline", "definitions": [SMALL], "description": text}


SOLUTIONS: list[dict[str, Any]] = [
    form("sdpa", "Per-sequence SDPA in bf16, kv heads as the batch."),
    form("sdpa_fp32", "Per-sequence SDPA on fp32 copies, kv heads as the batch."),
    form("sdpa_expanded", "Per-sequence SDPA in bf16 with kv heads repeated."),
    form("matmul", "Per-sequence matmul, softmax, matmul in fp32."),
    {
        "files": ["prefill_blocked.cc", "attention.h"],
        "name": "blocked",
        "author": "lab-2",
        "definitions": [SMALL],
        "style": "dps",
        "dependencies": [],
        "compile_options": [f"-D{name.upper()}={{{name}}}" for name in ("num_qo_heads", "num_kv_heads", "head_dim")] + ["-ffp-contract=fast"],
        "description": "C++: causal flash prefill, 64-row tiles against blocks of widened bf16 rows.",
    },
]
INCUMBENTS = {SMALL: ["sdpa_fp32", "sdpa", "sdpa_expanded", "matmul"]}


def workload(row: dict[str, Any], qo_lens: list[int], kv_lens: list[int]) -> dict[str, Any]:
    """One call of the paper's serving traffic; lengths in tokens."""
    recipes: dict[str, Any] = {name: {"type": "random"} for name in row["inputs"]}
    for name, lengths in (("qo_indptr", qo_lens), ("kv_indptr", kv_lens)):
        recipes[name] = {"type": "structured", "generator": "indptr", "params": {"lengths": lengths}}
    recipes["sm_scale"] = {"type": "scalar", "value": row["axes"]["head_dim"]["value"] ** -0.5}
    return {"axes": {"len_indptr": len(qo_lens) + 1, "total_q": sum(qo_lens), "total_kv": sum(kv_lens)}, "inputs": recipes}


POINTS = (([64], [64]), ([1024], [1024]), ([4096], [4096]), ([33, 500, 7, 1], [33, 900, 1200, 64]), ([200] * 16, [200] * 16))
WORKLOADS = {row["name"]: [workload(row, qo, kv) for qo, kv in POINTS] for row in DEFINITIONS[1:]}

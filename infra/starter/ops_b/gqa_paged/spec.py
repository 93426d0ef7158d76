"""Header table of the paged grouped-query attention kernels (decode and causal prefill)."""

from typing import Any

# Twice the default for bf16, settled on honest kernels: PyTorch's own bf16 flash attention reaches 0.97 of the default over the
# 48 distinct prefill shapes of a call log (early rows of a causal mask are larger than the RMS that scales the tolerance).
OUTPUT_ATOL = 2e-2


def var(text: str) -> dict[str, str]:
    return {"type": "var", "description": text}


def axes(heads: int, kv_heads: int, dim: int, page: int, stage: str) -> dict[str, Any]:
    sizes = {"num_qo_heads": heads, "num_kv_heads": kv_heads, "head_dim": dim, "page_size": page}
    const = {name: {"type": "const", "value": value} for name, value in sizes.items()}
    tail = {"num_pages": var("Pages in the cache."), "len_indptr": var("batch_size + 1."), "num_kv_indices": var("Pages in use.")}
    if stage == "decode":
        return {"batch_size": var("Sequences, one query token each.")} | const | tail
    head = {"total_q": var("Query tokens of all sequences.")} | const | tail
    return head | ({"batch_size": var("Sequences.")} if page > 1 else {})


def inputs(page: int, stage: str) -> dict[str, Any]:
    rows = "batch_size" if stage == "decode" else "total_q"
    cache = {"shape": ["num_pages", "page_size", "num_kv_heads", "head_dim"], "dtype": "bfloat16"}
    indptr = {"shape": ["len_indptr"], "dtype": "int32"}
    found: dict[str, Any] = {"q": {"shape": [rows, "num_qo_heads", "head_dim"], "dtype": "bfloat16"}, "k_cache": cache, "v_cache": cache}
    if stage == "prefill":
        found["qo_indptr"] = indptr
    found |= {"kv_indptr": indptr, "kv_indices": {"shape": ["num_kv_indices"], "dtype": "int32"}}
    if page > 1:
        found["kv_last_page_len"] = {"shape": ["batch_size"], "dtype": "int32", "description": "Valid tokens of the last page; 0 for an empty row."}
    return found | {"sm_scale": {"shape": None, "dtype": "float32"}}


def definition(heads: int, kv_heads: int, dim: int, page: int, stage: str, tags: list[str]) -> dict[str, Any]:
    rows = "batch_size" if stage == "decode" else "total_q"
    causal = "" if stage == "decode" else "_causal"
    used = ["num_kv_indices == kv_indptr[-1].item()"]
    batch = ["len_indptr == batch_size + 1"] if stage == "decode" or page > 1 else []
    return {
        "name": f"gqa_paged_{stage}{causal}_h{heads}_kv{kv_heads}_d{dim}_ps{page}",
        "description": f"Grouped-query attention {stage} with a paged cache; empty rows give zeros and -inf.",
        "op_type": "gqa_paged",
        "tags": [f"stage:{stage}", *tags],
        "axes": axes(heads, kv_heads, dim, page, stage),
        "constraints": batch + (["total_q == qo_indptr[-1].item()"] if stage == "prefill" else []) + used,
        "inputs": inputs(page, stage),
        "outputs": {
            "output": {"shape": [rows, "num_qo_heads", "head_dim"], "dtype": "bfloat16"},
            "lse": {"shape": [rows, "num_qo_heads"], "dtype": "float32", "description": "Base-2 log-sum-exp; -inf legal where no kv is seen."},
        },
        "numerics": {
            "version": 1,
            "outputs": {
                "output": {"kind": "elementwise", "atol": OUTPUT_ATOL, "rtol": 1e-2},
                "lse": {"kind": "lse", "atol": 1e-3, "rtol": 1e-3, "legal_nonfinite": ["-inf"], "lse_base": "2"},
            },
        },
        "reference": f"{stage}.py" if page > 1 else f"{stage}_ps1.py",
    }


CPU, GPU = "scale:cpu", "scale:gpu"
DEFINITIONS = [
    definition(32, 8, 64, 16, "decode", [CPU, "model:llama-3.2-1b"]),
    definition(16, 8, 128, 1, "decode", [CPU, "model:qwen3-0.6b", "tour:left-out"]),
    definition(32, 8, 64, 16, "prefill", [CPU, "model:llama-3.2-1b", "tour:left-out"]),
    definition(32, 8, 128, 1, "decode", [GPU, "model:llama-3.1-8b"]),
    definition(32, 4, 128, 1, "decode", [GPU, "model:qwen3-30b-a3b"]),
    definition(32, 8, 128, 1, "prefill", [GPU, "model:llama-3.1-8b"]),
    definition(32, 4, 128, 64, "prefill", [GPU, "model:qwen3-30b-a3b"]),
]
DECODE, DECODE_PS1, PREFILL = (row["name"] for row in DEFINITIONS[:3])
NATIVE = [f"-D{name.upper()}={{{name}}}" for name in ("num_qo_heads", "num_kv_heads", "head_dim", "page_size")]
NATIVE.append("-ffp-contract=fast")  # g++ fuses no multiply-add under -std=c++17 otherwise


def decode_form(short: str, text: str) -> list[dict[str, Any]]:
    row = {"file": f"decode_{short}.py", "name": short, "author": "baseline", "description": text}
    return [row | {"definitions": [DECODE]}, row | {"definitions": [DECODE_PS1], "entry": "run_ps1"}]


def prefill_form(short: str, text: str) -> dict[str, Any]:
    return {"file": f"prefill_{short}.py", "name": short, "author": "baseline", "definitions": [PREFILL], "description": text}


SOLUTIONS: list[dict[str, Any]] = [
    *decode_form("sdpa", "Gathered per-sequence SDPA in bf16, query heads of one kv head as rows."),
    *decode_form("sdpa_fp32", "Gathered per-sequence SDPA on fp32 copies, query heads of one kv head as rows."),
    *decode_form("sdpa_expanded", "Gathered per-sequence SDPA in bf16 with kv heads repeated."),
    *decode_form("gather_once", "One gather for the batch, then SDPA in bf16 on slices of it."),
    *decode_form("gather_once_fp32", "One gather and one cast for the batch, then SDPA in fp32 on slices of it."),
    *decode_form("matmul", "Per-sequence matmul, softmax, matmul in fp32."),
    *decode_form("padded", "The batch padded to its longest sequence, one masked SDPA."),
    prefill_form("sdpa", "Gathered per-sequence SDPA in bf16, kv heads as the batch."),
    prefill_form("sdpa_fp32", "Gathered per-sequence SDPA on fp32 copies, kv heads as the batch."),
    prefill_form("sdpa_expanded", "Gathered per-sequence SDPA in bf16 with kv heads repeated."),
    prefill_form("matmul", "Per-sequence matmul, softmax, matmul in fp32."),
    {
        "files": ["decode_blocked.cc", "attention.h"],
        "name": "blocked",
        "author": "lab-2",
        "definitions": [DECODE, DECODE_PS1],
        "style": "dps",
        "dependencies": [],
        "compile_options": NATIVE,
        "description": "C++: flash decode in fp32 over blocks of widened bf16 rows shared by the heads of a group.",
    },
    {
        "file": "decode_page_program.py",
        "name": "page_program",
        "author": "lab-5",
        "language": "triton",
        "definitions": [DECODE],
        "supports": ["batch_size <= 2", "num_kv_indices <= 8"],
        "dependencies": ["torch", "triton"],
        "description": "Triton: one program per sequence walks the pages with an online softmax.",
    },
    {
        "files": ["prefill_blocked.cc", "attention.h"],
        "name": "blocked",
        "author": "lab-2",
        "definitions": [PREFILL],
        "style": "dps",
        "dependencies": [],
        "compile_options": NATIVE,
        "description": "C++: causal flash prefill, 64-row tiles against blocks of widened bf16 rows.",
    },
]
# Order by CPU time summed over a tenth of the call log's distinct shapes; which form leads changes with the shape.
INCUMBENTS = {
    DECODE: ["padded", "sdpa", "sdpa_fp32", "gather_once_fp32", "gather_once", "matmul", "sdpa_expanded"],
    DECODE_PS1: ["gather_once", "sdpa", "padded", "sdpa_fp32", "gather_once_fp32", "matmul", "sdpa_expanded"],
    PREFILL: ["sdpa_fp32", "sdpa", "sdpa_expanded", "matmul"],
}


def workload(row: dict[str, Any], pool: int, kv_lens: list[int], qo_lens: list[int] | None = None) -> dict[str, Any]:
    """One call of the paper's serving traffic: lengths in tokens over a pool of ``pool`` pages."""
    page, inputs = row["axes"]["page_size"]["value"], row["inputs"]
    counts = [-(-length // page) for length in kv_lens]
    sizes = {
        "batch_size": len(kv_lens),
        "total_q": sum(qo_lens or ()),
        "num_pages": pool,
        "len_indptr": len(kv_lens) + 1,
        "num_kv_indices": sum(counts),
    }
    params = {
        "qo_indptr": ("indptr", {"lengths": qo_lens}),
        "kv_indptr": ("indptr", {"lengths": counts}),
        "kv_indices": ("page_indices", {"num_pages": pool, "counts": counts, "seed": sum(kv_lens)}),
        "kv_last_page_len": ("last_page_len", {"lengths": kv_lens, "page_size": page}),
    }
    recipes: dict[str, Any] = {name: {"type": "random"} for name in inputs}
    recipes |= {name: {"type": "structured", "generator": kind, "params": given} for name, (kind, given) in params.items() if name in inputs}
    recipes["sm_scale"] = {"type": "scalar", "value": row["axes"]["head_dim"]["value"] ** -0.5}
    return {"axes": {name: sizes[name] for name, axis in row["axes"].items() if axis["type"] == "var"}, "inputs": recipes}


def spread(count: int, base: int) -> list[int]:
    """Lengths between base/2 and 3/2 base, an empty row first if there are many."""
    return [0 if count > 8 and index == 0 else base // 2 + (index * 7919) % base for index in range(count)]


WORKLOADS = {
    row["name"]: [workload(row, 65536, spread(count, base)) for count, base in ((1, 900), (4, 2000), (16, 1000), (64, 700), (128, 400))]
    for row in DEFINITIONS[3:5]
} | {
    row["name"]: [
        workload(row, 65536 // row["axes"]["page_size"]["value"], kv, qo)
        for qo, kv in (
            ([128], [128]),
            ([512], [2048]),
            ([2048], [2048]),
            ([33, 500, 7, 1], [33, 900, 1200, 64]),
            ([256] * 8, [256 + 300 * index for index in range(8)]),
        )
    ]
    for row in DEFINITIONS[5:]
}

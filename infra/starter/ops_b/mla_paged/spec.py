"""Header table of the paged multi-head latent attention kernels (decode)."""

from typing import Any


def definition(heads: int, page: int, tags: list[str]) -> dict[str, Any]:
    sizes = {"num_qo_heads": heads, "head_dim_ckv": 512, "head_dim_kpe": 64, "page_size": page}
    ints = {name: {"shape": [axis], "dtype": "int32"} for name, axis in (("kv_indptr", "len_indptr"), ("kv_indices", "num_kv_indices"))}
    if page > 1:
        ints["kv_last_page_len"] = {"shape": ["batch_size"], "dtype": "int32"}
    return {
        "name": f"mla_paged_decode_h{heads}_ckv512_kpe64_ps{page}",
        "description": "Multi-head latent attention decode over the compressed paged cache; empty rows give zeros and -inf.",
        "op_type": "mla_paged",
        "tags": ["stage:decode", "model:deepseek-v3", "tp:8", *tags],
        "axes": {"batch_size": {"type": "var", "description": "Sequences, one query token each."}}
        | {name: {"type": "const", "value": value} for name, value in sizes.items()}
        | {
            "num_pages": {"type": "var", "description": "Pages in the cache."},
            "len_indptr": {"type": "var", "description": "batch_size + 1."},
            "num_kv_indices": {"type": "var", "description": "Pages in use."},
        },
        "constraints": ["len_indptr == batch_size + 1", "num_kv_indices == kv_indptr[-1].item()"],
        "inputs": {
            "q_nope": {"shape": ["batch_size", "num_qo_heads", "head_dim_ckv"], "dtype": "bfloat16"},
            "q_pe": {"shape": ["batch_size", "num_qo_heads", "head_dim_kpe"], "dtype": "bfloat16"},
            "ckv_cache": {"shape": ["num_pages", "page_size", "head_dim_ckv"], "dtype": "bfloat16"},
            "kpe_cache": {"shape": ["num_pages", "page_size", "head_dim_kpe"], "dtype": "bfloat16"},
            **ints,
            "sm_scale": {"shape": None, "dtype": "float32", "description": "1/sqrt(128 + 64): the head size before absorption."},
        },
        "outputs": {
            "output": {"shape": ["batch_size", "num_qo_heads", "head_dim_ckv"], "dtype": "bfloat16"},
            "lse": {"shape": ["batch_size", "num_qo_heads"], "dtype": "float32", "description": "Base-2 log-sum-exp; -inf legal where no kv is seen."},
        },
        "numerics": {
            "version": 1,
            "outputs": {
                "output": {"kind": "elementwise", "atol": 1e-2, "rtol": 1e-2},
                "lse": {"kind": "lse", "atol": 1e-3, "rtol": 1e-3, "legal_nonfinite": ["-inf"], "lse_base": "2"},
            },
        },
        "reference": "decode.py" if page > 1 else "decode_ps1.py",
    }


DEFINITIONS = [definition(16, 1, ["scale:cpu"]), definition(16, 64, ["scale:gpu"])]
SMALL = DEFINITIONS[0]["name"]


def form(short: str, text: str) -> dict[str, Any]:
    return {"file": f"decode_{short}.py", "name": short, "author": "baseline", "definitions": [SMALL], "entry": "run_ps1", "description": text}


SOLUTIONS: list[dict[str, Any]] = [
    form("matmul_fp32", "Per-sequence matmuls and softmax in fp32."),
    form("matmul_bf16", "Per-sequence matmuls in bf16, softmax in fp32.") | {"author": "lab-1"},
    form("gather_once", "One gather and one cast for the batch, then fp32 matmuls on slices of it."),
    form("sdpa", "Per-sequence SDPA in bf16 on concatenated keys, heads as rows."),
    form("sdpa_fp32", "Per-sequence SDPA on fp32 copies of concatenated keys, heads as rows."),
    {
        "files": ["decode_blocked.cc", "attention.h"],
        "name": "blocked",
        "author": "lab-2",
        "definitions": [SMALL],
        "style": "dps",
        "dependencies": [],
        "compile_options": [f"-D{name.upper()}={{{name}}}" for name in ("num_qo_heads", "head_dim_ckv", "head_dim_kpe", "page_size")] + ["-ffp-contract=fast"],
        "description": "C++: flash decode in fp32; each cached row is widened once and serves all heads as key and value.",
    },
]
INCUMBENTS = {SMALL: ["gather_once", "sdpa", "sdpa_fp32", "matmul_fp32"]}


def workload(row: dict[str, Any], pool: int, kv_lens: list[int]) -> dict[str, Any]:
    """One call of the paper's serving traffic: lengths in tokens over a pool of ``pool`` pages."""
    page = row["axes"]["page_size"]["value"]
    counts = [-(-length // page) for length in kv_lens]
    params = {
        "kv_indptr": ("indptr", {"lengths": counts}),
        "kv_indices": ("page_indices", {"num_pages": pool, "counts": counts, "seed": sum(kv_lens)}),
        "kv_last_page_len": ("last_page_len", {"lengths": kv_lens, "page_size": page}),
    }
    recipes: dict[str, Any] = {name: {"type": "random"} for name in row["inputs"]}
    recipes |= {name: {"type": "structured", "generator": kind, "params": given} for name, (kind, given) in params.items()}
    recipes["sm_scale"] = {"type": "scalar", "value": 192**-0.5}
    axes = {"batch_size": len(kv_lens), "num_pages": pool, "len_indptr": len(kv_lens) + 1, "num_kv_indices": sum(counts)}
    return {"axes": axes, "inputs": recipes}


LENGTHS = ([900], [700, 3000, 60, 1500], [500 + 97 * index for index in range(16)], [0, *[300 + 41 * index for index in range(63)]])
WORKLOADS = {row["name"]: [workload(row, 4096, lengths) for lengths in LENGTHS] for row in DEFINITIONS[1:]}

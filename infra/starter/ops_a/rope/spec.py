"""Rotary embedding with a cos/sin cache, NeoX halves: Llama-3.2-1B for a CPU, Llama-3.1-8B and Qwen3-30B-A3B for GPUs."""


def definition(head: int, rotary: int, scale: str, models: list[str]) -> dict:
    """Functional: rotated copies of q and k."""
    return {
        "name": f"rope_with_cos_sin_cache_neox_style_d{head}_rd{rotary}",
        "op_type": "rope",
        "description": f"Rotary embedding of q and k from a cos/sin cache, NeoX halves, {rotary} of {head} dimensions rotated.",
        "tags": [f"scale:{scale}", *[f"model:{model}" for model in models]],
        "axes": {
            "num_tokens": {"type": "var", "description": "Tokens of all sequences together."},
            "num_qo_heads": {"type": "var"},
            "num_kv_heads": {"type": "var"},
            "head_size": {"type": "const", "value": head},
            "rotary_dim": {"type": "const", "value": rotary},
            "max_seq_len": {"type": "var", "description": "Rows of the cache."},
        },
        "inputs": {
            "q": {"shape": ["num_tokens", "num_qo_heads", "head_size"], "dtype": "bfloat16"},
            "k": {"shape": ["num_tokens", "num_kv_heads", "head_size"], "dtype": "bfloat16"},
            "cos_sin_cache": {
                "shape": ["max_seq_len", "rotary_dim"], "dtype": "float32",
                "description": "First half of each row is cos, second half sin.",
            },
            "positions": {"shape": ["num_tokens"], "dtype": "int64", "description": "Row of the cache for each token."},
        },
        "outputs": {
            "q_out": {"shape": ["num_tokens", "num_qo_heads", "head_size"], "dtype": "bfloat16"},
            "k_out": {"shape": ["num_tokens", "num_kv_heads", "head_size"], "dtype": "bfloat16"},
        },
        "reference": "rope.py",
    }


def workload(tokens: int, heads: int, kv_heads: int, start: int) -> dict:
    """One decode batch (every token its own sequence) or one prefill (positions from 0)."""
    runs = ([start + 17 * i for i in range(tokens)], [1] * tokens) if start else ([0], [tokens])
    return {
        "axes": {"num_tokens": tokens, "num_qo_heads": heads, "num_kv_heads": kv_heads, "max_seq_len": 8192},
        "inputs": {
            "q": {"type": "random"},
            "k": {"type": "random"},
            "cos_sin_cache": {"type": "random", "distribution": "cos_sin_cache"},
            "positions": {"type": "structured", "generator": "positions", "params": {"starts": runs[0], "lengths": runs[1]}},
        },
    }


CPU = definition(64, 64, "cpu", ["llama-3.2-1b"])
GPU = definition(128, 128, "gpu", ["llama-3.1-8b", "qwen3-30b-a3b"])
DEFINITIONS = [CPU, GPU]
SMALL, BIG = [CPU["name"]], [GPU["name"]]
ALL = SMALL + BIG
FORMS = ["joined_heads", "halves", "rotate_half", "complex_numbers"]
INCUMBENTS = dict.fromkeys(ALL, FORMS)
WORKLOADS = {
    GPU["name"]: [
        workload(tokens, 32, kv_heads, start)
        for kv_heads in (8, 4)
        for tokens, start in ((1, 900), (8, 700), (32, 500), (128, 300), (1024, 0), (4096, 0))
    ]
}

SOLUTIONS = [
    {
        "name": "rotate_half", "author": "baseline", "file": "rotate_half.py", "definitions": ALL,
        "description": "x * cos + rotate_half(x) * sin",
    },
    {
        "name": "halves", "author": "baseline", "file": "halves.py", "definitions": ALL,
        "description": "both halves written into one output",
    },
    {
        "name": "joined_heads", "author": "baseline", "file": "joined_heads.py", "definitions": ALL,
        "description": "q and k joined, every operator once",
    },
    {
        "name": "complex_numbers", "author": "baseline", "file": "complex_numbers.py", "definitions": ALL,
        "description": "one complex product",
    },
    {
        "name": "fused_rows", "author": "lab-2", "file": "fused_rows.cc", "style": "dps", "definitions": SMALL,
        "compile_options": ["-DHEAD_SIZE={head_size}", "-DROTARY_DIM={rotary_dim}"],
        "description": "one vectorised pass over q and k",
    },
    {
        "name": "token_program", "author": "lab-5", "file": "token_program.py", "language": "triton", "style": "dps",
        "definitions": BIG, "description": "one program per token and block of heads",
    },
    {
        "name": "pairs", "author": "lab-3", "file": "pairs.py", "definitions": SMALL,
        "description": "rotates pairs of dimensions",
    },
    {
        "name": "lookahead", "author": "lab-4", "file": "lookahead.cc", "style": "dps", "definitions": SMALL,
        "description": "finds runs of positions first",
    },
    {
        "name": "table", "author": "lab-6", "file": "table.py", "definitions": SMALL,
        "description": "angles from a table of its own",
    },
    {
        "name": "flat", "author": "lab-1", "file": "flat.py", "definitions": SMALL,
        "description": "works on flattened heads",
    },
]

"""GEMM, C = A @ B.T: projections of Qwen3-0.6B and Llama-3.2-1B for a CPU; the paper's models for GPUs (fp16, as published)."""


def definition(n: int, k: int, dtype: str, scale: str, model: str, layer: str, *tags: str) -> dict:
    """One weight shape; M is the number of tokens."""
    return {
        "name": f"gemm_n{n}_k{k}",
        "op_type": "gemm",
        "description": f"C = A @ B.T with a weight of {n} x {k}: {layer} of {model}.",
        "tags": [f"scale:{scale}", f"model:{model}", *tags],
        "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": n}, "K": {"type": "const", "value": k}},
        "inputs": {"A": {"shape": ["M", "K"], "dtype": dtype}, "B": {"shape": ["N", "K"], "dtype": dtype}},
        "outputs": {"C": {"shape": ["M", "N"], "dtype": dtype}},
        "reference": "gemm.py",
    }


CPU = [
    definition(1024, 2048, "bfloat16", "cpu", "qwen3-0.6b", "attn.o_proj"),
    definition(512, 2048, "bfloat16", "cpu", "llama-3.2-1b", "attn.k_proj", "tour:left-out"),
]
GPU = [
    definition(6144, 4096, "float16", "gpu", "llama-3.1-8b", "attn.qkv_proj"),
    definition(28672, 4096, "float16", "gpu", "llama-3.1-8b", "mlp.gate_up_proj"),
    definition(2048, 4096, "float16", "gpu", "qwen3-30b-a3b", "attn.o_proj"),
    definition(256, 7168, "float16", "gpu", "deepseek-v3", "moe.gate"),
    definition(7168, 2048, "float16", "gpu", "deepseek-v3-tp8", "attn.o_proj"),
]
DEFINITIONS = CPU + GPU
CPU_NAMES = [row["name"] for row in CPU]
GPU_NAMES = [row["name"] for row in GPU]
ALL = CPU_NAMES + GPU_NAMES
ONE = CPU_NAMES[:1]
INCUMBENTS = {name: ["by_rows", "linear", "matmul", "slices", "upcast", "swapped"] for name in CPU_NAMES}
INCUMBENTS |= {name: ["linear", "matmul"] for name in GPU_NAMES}
WORKLOADS = {
    name: [
        {"axes": {"M": rows}, "inputs": {"A": {"type": "random"}, "B": {"type": "random", "distribution": "weight"}}}
        for rows in (1, 2, 4, 8, 16, 32, 64, 128, 1024, 4096)
    ]
    for name in GPU_NAMES
}

SOLUTIONS = [
    {"name": "linear", "author": "baseline", "file": "linear.py", "definitions": ALL, "description": "F.linear"},
    {"name": "matmul", "author": "baseline", "file": "matmul.py", "definitions": ALL, "description": "torch.matmul(A, B.T)"},
    {
        "name": "upcast", "author": "baseline", "file": "upcast.py", "definitions": CPU_NAMES,
        "description": "both operands converted to fp32, then the fp32 GEMM",
    },
    {
        "name": "swapped", "author": "baseline", "file": "swapped.py", "definitions": CPU_NAMES,
        "description": "the transposed product, copied back",
    },
    {
        "name": "slices", "author": "baseline", "file": "slices.py", "definitions": CPU_NAMES,
        "description": "fp32 GEMM on slices of the weight, each converted in cache",
    },
    {
        "name": "by_rows", "author": "baseline", "file": "by_rows.py", "definitions": CPU_NAMES,
        "description": "F.linear for few rows, fp32 GEMM on converted slices for many",
    },
    {
        "name": "dot_block", "author": "lab-2", "file": "dot_block.cc", "style": "dps", "definitions": CPU_NAMES,
        "description": "register-tiled dot products on bf16 weights, fp32 accumulation",
    },
    {
        "name": "row_tiles", "author": "lab-5", "file": "row_tiles.py", "language": "triton", "style": "dps",
        "definitions": CPU_NAMES[1:], "supports": ["M <= 16"],
        "description": "one program per 16 x 256 tile, K in steps of 512, fp32 inside",
    },
    {
        "name": "row_tiles", "author": "lab-5", "file": "row_tiles_gpu.py", "language": "triton", "style": "dps",
        "definitions": GPU_NAMES, "description": "tile sizes by M, grouped over L2",
    },
    {
        "name": "outer_sum", "author": "lab-1", "file": "outer_sum.py", "definitions": ONE,
        "description": "sum of partial products over K slices",
    },
    {
        "name": "unrolled", "author": "lab-3", "file": "unrolled.cc", "style": "dps", "definitions": ONE,
        "description": "dot products in steps of 16, unrolled",
    },
    {
        "name": "packed", "author": "lab-4", "file": "packed.cc", "style": "dps", "definitions": ONE,
        "description": "packs the weight panel by panel",
    },
    {
        "name": "wide_sum", "author": "lab-1", "file": "wide_sum.py", "definitions": ONE,
        "description": "fp32 operands and accumulation",
    },
    {
        "name": "stash", "author": "lab-6", "file": "stash.py", "definitions": ONE, "supports": ["M == 1"],
        "description": "keeps widened copies of its operands",
    },
]

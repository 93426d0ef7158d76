"""RMSNorm, plain and with the residual added in place: Qwen3-0.6B for a CPU, the paper's models for GPUs."""

ROWS = ["batch_size", "hidden_size"]


def _common(name: str, hidden: int, scale: str, model: str, eps: str, **rest: object) -> dict:
    return {
        "name": name,
        "op_type": "rmsnorm",
        "tags": [f"scale:{scale}", f"model:{model}"],
        "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": hidden}},
    } | rest


def plain(hidden: int, scale: str, model: str, eps: str) -> dict:
    """output = rmsnorm(hidden_states) * weight."""
    return _common(
        f"rmsnorm_h{hidden}", hidden, scale, model, eps,
        description=f"Root mean square norm over {hidden} features; epsilon is fixed at {eps}.",
        inputs={
            "hidden_states": {"shape": ROWS, "dtype": "bfloat16"},
            "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"},
        },
        outputs={"output": {"shape": ROWS, "dtype": "bfloat16"}},
        reference="rmsnorm.py" if eps == "1e-6" else "rmsnorm_eps5.py",
    )


def fused(hidden: int, scale: str, model: str, eps: str) -> dict:
    """residual += hidden_states, output = rmsnorm(residual) * weight."""
    return _common(
        f"fused_add_rmsnorm_h{hidden}", hidden, scale, model, eps,
        description=f"Residual add in place, then root mean square norm over {hidden} features; epsilon is fixed at {eps}.",
        inputs={
            "hidden_states": {"shape": ROWS, "dtype": "bfloat16"},
            "residual": {"shape": ROWS, "dtype": "bfloat16"},
            "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"},
        },
        outputs={
            "output": {"shape": ROWS, "dtype": "bfloat16"},
            "residual_out": {"shape": ROWS, "dtype": "bfloat16"},
        },
        reference="fused_add_rmsnorm.py" if eps == "1e-6" else "fused_add_rmsnorm_eps5.py",
        mutates={"residual": "residual_out"},
    )


GPU_MODELS = [(4096, "gpu", "llama-3.1-8b", "1e-5"), (2048, "gpu", "qwen3-30b-a3b", "1e-6"), (7168, "gpu", "deepseek-v3", "1e-6")]
CPU_MODEL = (1024, "cpu", "qwen3-0.6b", "1e-6")
DEFINITIONS = [plain(*CPU_MODEL), fused(*CPU_MODEL)]
DEFINITIONS += [plain(*model) for model in GPU_MODELS] + [fused(*model) for model in GPU_MODELS]
PLAIN, FUSED = ["rmsnorm_h1024"], ["fused_add_rmsnorm_h1024"]
# Kernel files fix epsilon at 1e-6; the models with 1e-5 have files of their own.
PLAIN_6, PLAIN_5 = [*PLAIN, "rmsnorm_h2048", "rmsnorm_h7168"], ["rmsnorm_h4096"]
FUSED_6, FUSED_5 = [*FUSED, "fused_add_rmsnorm_h2048", "fused_add_rmsnorm_h7168"], ["fused_add_rmsnorm_h4096"]
INCUMBENTS = {name: ["aten", "vector_norm", "fp32"] for name in PLAIN_6}
INCUMBENTS |= {"rmsnorm_h4096": ["aten"], "fused_add_rmsnorm_h4096": ["add_aten"]}
INCUMBENTS |= {name: ["add_aten", "add_fp32_aten", "add_fp32"] for name in FUSED_6}
WORKLOADS = {
    row["name"]: [
        {
            "axes": {"batch_size": size},
            "inputs": {name: {"type": "random"} for name in row["inputs"]}
            | {"weight": {"type": "random", "distribution": "norm_weight"}},
        }
        for size in (1, 4, 16, 64, 256, 1024, 8192)
    ]
    for row in DEFINITIONS
    if "scale:gpu" in row["tags"]
}

SOLUTIONS = [
    {"name": "aten", "author": "baseline", "file": "aten.py", "definitions": PLAIN_6, "description": "F.rms_norm"},
    {"name": "aten", "author": "baseline", "file": "aten_eps5.py", "definitions": PLAIN_5, "description": "F.rms_norm"},
    {"name": "fp32", "author": "baseline", "file": "fp32.py", "definitions": PLAIN_6, "description": "textbook lines in fp32"},
    {
        "name": "vector_norm", "author": "baseline", "file": "vector_norm.py", "definitions": PLAIN_6,
        "description": "fused reduction by vector_norm, products in place",
    },
    {
        "name": "add_aten", "author": "baseline", "file": "add_aten.py", "definitions": FUSED_6,
        "description": "residual.add_, then F.rms_norm",
    },
    {
        "name": "add_aten", "author": "baseline", "file": "add_aten_eps5.py", "definitions": FUSED_5,
        "description": "residual.add_, then F.rms_norm",
    },
    {
        "name": "add_fp32", "author": "baseline", "file": "add_fp32.py", "definitions": FUSED_6,
        "description": "sum and norm in fp32",
    },
    {
        "name": "add_fp32_aten", "author": "baseline", "file": "add_fp32_aten.py", "definitions": FUSED_6,
        "description": "sum in fp32, one ATen norm",
    },
    {
        "name": "two_pass", "author": "lab-2", "file": "two_pass.cc", "style": "dps", "definitions": PLAIN,
        "compile_options": ["-DHIDDEN_SIZE={hidden_size}"], "description": "two vectorised passes over a row held in L1",
    },
    {
        "name": "two_pass", "author": "lab-2", "file": "two_pass.cc", "style": "dps", "definitions": FUSED,
        "compile_options": ["-DHIDDEN_SIZE={hidden_size}", "-DFUSED_ADD"],
        "description": "add, store and norm in two vectorised passes over a row held in L1",
    },
    {
        "name": "row_program", "author": "lab-5", "file": "row_program.py", "language": "triton", "style": "dps",
        "definitions": PLAIN, "supports": ["batch_size <= 64"], "description": "one program per row",
    },
    {
        "name": "row_program", "author": "lab-5", "file": "row_program.py", "language": "triton", "style": "dps",
        "definitions": PLAIN_6[1:], "description": "one program per row",
    },
    {
        "name": "add_row_program", "author": "lab-5", "file": "add_row_program.py", "language": "triton", "style": "dps",
        "definitions": FUSED_6[1:], "description": "one program per row, residual in place",
    },
    {
        "name": "row_loop", "author": "lab-1", "file": "row_loop.py", "definitions": PLAIN,
        "description": "a Python loop over rows",
    },
    {
        "name": "split_sum", "author": "lab-3", "file": "split_sum.py", "definitions": PLAIN,
        "description": "sum of squares part by part",
    },
    {
        "name": "in_place", "author": "lab-4", "file": "in_place.py", "definitions": PLAIN,
        "description": "products in place, no temporary",
    },
    {
        "name": "pointer_walk", "author": "lab-6", "file": "pointer_walk.cc", "style": "dps", "definitions": FUSED,
        "description": "walks the rows by pointer",
    },
    {
        "name": "keep_residual", "author": "lab-1", "file": "keep_residual.py", "definitions": FUSED,
        "description": "sum in fp32, norm in fp32",
    },
    {
        "name": "running", "author": "lab-4", "file": "running.cc", "style": "dps", "definitions": PLAIN,
        "description": "Newton steps for the inverse square root",
    },
]

"""Header table of the FP8 block-scaled mixture-of-experts kernels (DeepSeek-V3 routing)."""

from typing import Any

BLOCK = 128


def definition(routing: tuple[int, int, int], experts: tuple[int, int], hidden: int, inter: int, tags: list[str]) -> dict[str, Any]:
    """``routing`` = (top k, groups, groups kept); ``experts`` = (all, local)."""
    (top_k, groups, kept), (total, local) = routing, experts
    sizes = {
        "num_experts": total,
        "num_local_experts": local,
        "hidden_size": hidden,
        "intermediate_size": inter,
        "gemm1_out_size": 2 * inter,
        "num_hidden_blocks": hidden // BLOCK,
        "num_intermediate_blocks": inter // BLOCK,
        "num_gemm1_out_blocks": 2 * inter // BLOCK,
    }
    shapes = {
        "routing_logits": (["seq_len", "num_experts"], "float32"),
        "routing_bias": (["num_experts"], "bfloat16"),
        "hidden_states": (["seq_len", "hidden_size"], "float8_e4m3fn"),
        "hidden_states_scale": (["num_hidden_blocks", "seq_len"], "float32"),
        "gemm1_weights": (["num_local_experts", "gemm1_out_size", "hidden_size"], "float8_e4m3fn"),
        "gemm1_weights_scale": (["num_local_experts", "num_gemm1_out_blocks", "num_hidden_blocks"], "float32"),
        "gemm2_weights": (["num_local_experts", "hidden_size", "intermediate_size"], "float8_e4m3fn"),
        "gemm2_weights_scale": (["num_local_experts", "num_hidden_blocks", "num_intermediate_blocks"], "float32"),
        "local_expert_offset": (None, "int32"),
        "routed_scaling_factor": (None, "float32"),
    }
    return {
        "name": f"moe_fp8_block_scale_ds_routing_topk{top_k}_ng{groups}_kg{kept}_e{local}_h{hidden}_i{inter}",
        "description": "FP8 block-scaled mixture of experts: bias-corrected group-limited routing, two grouped matmuls, SwiGLU (up first, gate second).",
        "op_type": "moe",
        "tags": ["quantization:float8_e4m3fn", *tags],
        "axes": {"seq_len": {"type": "var", "description": "Tokens."}} | {name: {"type": "const", "value": value} for name, value in sizes.items()},
        "constraints": [],
        "inputs": {name: {"shape": shape, "dtype": dtype} for name, (shape, dtype) in shapes.items()},
        "outputs": {"output": {"shape": ["seq_len", "hidden_size"], "dtype": "bfloat16"}},
        "reference": "ds_routing.py" if groups == 4 else "ds_routing_v3.py",
    }


DEFINITIONS = [
    definition((4, 4, 2), (16, 16), 256, 256, ["scale:cpu", "model:deepseek-v3-small"]),
    definition((8, 8, 4), (256, 32), 7168, 2048, ["scale:gpu", "model:deepseek-v3", "ep:8"]),
]
SMALL, PAPER = (row["name"] for row in DEFINITIONS)


def form(short: str, text: str) -> dict[str, Any]:
    return {"file": f"{short}.py", "name": short, "author": "baseline", "definitions": [SMALL], "description": text}


SOLUTIONS: list[dict[str, Any]] = [
    form("loop_bits", "Per-expert loop; weights widened by bit arithmetic."),
    form("loop_table", "Per-expert loop; weights widened by a table."),
    form("loop_cast", "Per-expert loop; weights widened by a plain cast."),
    form("dense_bmm", "Every expert on every token in two batched matmuls."),
    {
        "file": "fused.cc",
        "name": "fused",
        "author": "lab-2",
        "definitions": [SMALL],
        "style": "dps",
        "dependencies": [],
        "compile_options": ["-DHIDDEN_SIZE={hidden_size}", "-DINTERMEDIATE_SIZE={intermediate_size}", "-DNUM_EXPERTS={num_experts}", "-DTOP_K=4", "-DNUM_GROUPS=4", "-DTOP_GROUPS=2", "-ffp-contract=fast"],
        "description": "C++: weights widened two rows at a time and used at once by every token of the expert.",
    },
]
INCUMBENTS = {SMALL: ["loop_bits", "dense_bmm", "loop_table", "loop_cast"]}


def workload(row: dict[str, Any], tokens: int) -> dict[str, Any]:
    """One rank of eight: the sixth share of the experts is local."""
    recipes: dict[str, Any] = {name: {"type": "random"} for name in row["inputs"]}
    recipes |= {name: {"type": "random", "distribution": name} for name in ("routing_logits", "routing_bias")}
    recipes |= {
        name: {"type": "random", "distribution": "activation_scale" if name == "hidden_states_scale" else "block_scale"}
        for name in row["inputs"]
        if name.endswith("_scale")
    }
    recipes |= {"local_expert_offset": {"type": "scalar", "value": 160}, "routed_scaling_factor": {"type": "scalar", "value": 2.5}}
    return {"axes": {"seq_len": tokens}, "inputs": recipes}


WORKLOADS = {PAPER: [workload(DEFINITIONS[1], tokens) for tokens in (1, 4, 16, 64, 256, 1024)]}

"""Sampling one token a row from filtered probabilities: TinyLlama's vocabulary for a CPU, Llama-3.1's, DeepSeek-V3's and Qwen3's for GPUs."""

FILTERS = {
    "top_k": {"top_k": {"shape": ["batch_size"], "dtype": "int32", "description": "Tokens that stay; outside 1..vocab_size-1 all do."}},
    "top_p": {"top_p": {"shape": ["batch_size"], "dtype": "float32", "description": "Mass that stays; >= 1 all, <= 0 the top token."}},
}
FILTERS["top_k_top_p"] = FILTERS["top_k"] | FILTERS["top_p"]
KINDS = ["top_k", "top_p", "top_k_top_p"]


def label(kind: str, vocab: int) -> str:
    """The public name."""
    return f"{kind}_sampling_from_probs_v{vocab}"


def definition(kind: str, vocab: int, scale: str, model: str) -> dict:
    """One filter and vocabulary."""
    return {
        "name": label(kind, vocab),
        "op_type": "sampling",
        "description": f"One token a row from probabilities filtered by {kind.replace('_', '-')}, renormalised. Ties rank by index.",
        "tags": [f"scale:{scale}", f"model:{model}", *(["tour:left-out"] if kind != "top_k" else [])],
        "axes": {"batch_size": {"type": "var"}, "vocab_size": {"type": "const", "value": vocab}},
        "inputs": {"probs": {"shape": ["batch_size", "vocab_size"], "dtype": "float32"}} | FILTERS[kind],
        "outputs": {"samples": {"shape": ["batch_size"], "dtype": "int64"}},
        "reference": f"{kind}.py",
    }


def workload(kind: str, batch: int) -> dict:
    """Fresh probabilities, the filters that chat services use."""
    values = {"top_k": [50, 20, 40], "top_p": [0.9, 0.95, 0.8]}
    filters = {
        name: {"type": "structured", "generator": "cycle", "params": {"values": values[name], "count": batch}}
        for name in FILTERS[kind]
    }
    return {"axes": {"batch_size": batch}, "inputs": {"probs": {"type": "random", "distribution": "probs"}} | filters}


MODELS = [(128256, "llama-3.1-8b"), (129280, "deepseek-v3"), (151936, "qwen3-30b-a3b")]
DEFINITIONS = [definition(kind, 32000, "cpu", "tinyllama-1.1b") for kind in KINDS]
DEFINITIONS += [definition(kind, vocab, "gpu", model) for vocab, model in MODELS for kind in KINDS]
WORKLOADS = {label(kind, vocab): [workload(kind, n) for n in (1, 4, 16, 64, 256)] for vocab, _ in MODELS for kind in KINDS}
FORMS = {  # fastest measured first
    "top_k": ["exponential", "inverse", "multinomial", "sort"],
    "top_p": ["rejection", "inverse", "prefix", "sort"],
    "top_k_top_p": ["inverse", "multinomial", "sort"],
}
# A full sort of 32,000 takes a CPU core 3 ms a row, some thirty times the best form: on CPU one such form, for top-p, is kept.
TOO_SLOW_ON_CPU = {"sort", "prefix"}
# On an H200 a sort is cheap up to a batch of 64 rows, and rejection pays its round trips.
GPU_FORMS = FORMS | {"top_p": ["inverse", "rejection", "sort", "prefix"]}
INCUMBENTS = {label(kind, vocab): GPU_FORMS[kind] for vocab, _ in MODELS for kind in KINDS}
INCUMBENTS |= {label(kind, 32000): [form for form in FORMS[kind] if form not in TOO_SLOW_ON_CPU] for kind in KINDS}
WORDS = {
    "inverse": "inverse of the cumulative sum over the prefix that stays",
    "exponential": "torch.topk, then the exponential race",
    "multinomial": "torch.topk, masks, torch.multinomial",
    "sort": "full sort, masks, torch.multinomial",
    "rejection": "no sort: draw, accept if inside the nucleus",
    "prefix": "torch.topk of 1,024 if that holds the nucleus, else a sort",
}
SOLUTIONS = [
    {
        "name": form, "author": "baseline", "file": f"{kind}_{form}.py", "description": WORDS[form],
        "definitions": [name for name, forms in INCUMBENTS.items() if name.startswith(f"{kind}_sampling") and form in forms],
    }
    for kind in KINDS
    for form in FORMS[kind]
]
SOLUTIONS += [
    {
        "name": "select_and_draw", "author": "lab-2", "file": "select_and_draw.cc", "style": "dps", "entry": kind,
        "definitions": [label(kind, 32000)], "description": "selection by a rising threshold, acceptance by ranked mass; no sort",
    }
    for kind in KINDS
]
TOP_K, TOP_P, BOTH = ([label(kind, 32000)] for kind in KINDS)
SOLUTIONS += [
    {
        "name": "column", "author": "lab-3", "file": "top_k_column.py", "definitions": TOP_K,
        "description": "the exponential race, kept two-dimensional",
    },
    {
        "name": "even_race", "author": "lab-6", "file": "top_k_even_race.py", "definitions": TOP_K,
        "description": "a race among the k that stay",
    },
    {
        "name": "mersenne", "author": "lab-4", "file": "top_p_mersenne.cc", "style": "dps", "definitions": TOP_P,
        "description": "threshold by bisection, Mersenne twister",
    },
    {
        "name": "prefix_mass", "author": "lab-6", "file": "top_k_top_p_prefix_mass.py", "definitions": BOTH,
        "description": "both filters on one cumulative sum",
    },
]

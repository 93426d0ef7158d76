"""The least time that a call can take: what it must move and compute, over what the device can do at most.

In: a definition, a workload, peaks of a device. Out: :class:`Work` and a floor in microseconds. Only what is certain
counts: an honest kernel is never below its floor. Knows no kernel, no sample, no torch.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.definition import Definition
from schemas.workload import StructuredInput, Workload

MARGIN = 0.7
"""Share of the roofline below which a time is impossible."""
# A kernel may keep what it prepared from a static input in a narrower form that its tolerance allows (int8 for bf16).
_STATIC_SHARE = 0.5
# A sampler may stop reading a row once its draw is certain: half of it on average, for one row perhaps far less.
_PROBS_SHARE = 0.25
_BITS = {
    "float32": 32, "float16": 16, "bfloat16": 16, "float8_e4m3fn": 8, "float8_e5m2": 8, "float4_e2m1": 4,
    "int64": 64, "int32": 32, "int16": 16, "int8": 8, "bool": 8,
}  # fmt: skip
_WHOLE = {"gemm": {"A", "B", "x", "weight", "bias"}, "rmsnorm": {"hidden_states", "x", "residual", "weight"}}


@dataclass(frozen=True)
class Work:
    """Lower bounds on one call: unique bytes by whether their contents are new, and multiplications plus additions."""

    fresh_bytes: float = 0.0
    static_bytes: float = 0.0
    flops: float = 0.0


@dataclass(frozen=True)
class Peaks:
    """Upper bounds on one device: the level next to the arithmetic, the level behind it, the arithmetic.

    ``near_capacity_bytes``: what the near level holds, so that at most this much of the inputs lies there before a
    call, and of the outputs after it.
    """

    near_bytes_per_s: float
    far_bytes_per_s: float
    near_capacity_bytes: float
    flops_per_s: float


def bound_us(work: Work, peaks: Peaks) -> float:
    """The roofline: the larger of moving and computing, since a kernel may do both at once."""
    moved = work.fresh_bytes + work.static_bytes
    beyond = max(0.0, moved - 2 * peaks.near_capacity_bytes)
    moving_s = max(moved / peaks.near_bytes_per_s, beyond / peaks.far_bytes_per_s)
    return max(moving_s, work.flops / peaks.flops_per_s) * 1e6


def floor_us(work: Work, peaks: Peaks) -> float:
    """No honest call is faster."""
    return MARGIN * bound_us(work, peaks)


def least_work(definition: Definition, workload: Workload) -> Work:
    """What every correct kernel must do. Of an unknown operator only the outputs are certain.

    And not even these where an output may follow from static inputs alone, or be an input of which little changes.
    """
    facts = _Facts(definition, workload)
    counter = _COUNTERS.get(definition.op_type)
    if counter is not None:
        return counter(facts)
    kept = [] if definition.static else [n for n in definition.outputs if n not in definition.mutates.values()]
    return Work(fresh_bytes=sum(facts.size_bytes(name) for name in kept))


class _Facts:
    """Sizes and structure of one workload, asked by name."""

    def __init__(self, definition: Definition, workload: Workload) -> None:
        self.definition, self.workload = definition, workload
        self.sizes = definition.const_axes | workload.axes

    def has(self, *names: str) -> bool:
        """Are these inputs of the definition?"""
        return all(name in self.definition.inputs for name in names)

    def shape(self, name: str) -> tuple[int, ...]:
        """Empty for a scalar."""
        return self.definition.shape_of(name, self.workload.axes) or ()

    def size_bytes(self, name: str) -> float:
        """Of a whole tensor; nothing for a scalar."""
        spec = self.definition.inputs.get(name) or self.definition.outputs[name]
        return 0.0 if spec.shape is None else math.prod(self.shape(name)) * _BITS[spec.dtype] / 8

    def structure(self, name: str, *generators: str) -> dict[str, Any] | None:
        """Parameters of a rebuilt input, if it is made by one of these generators."""
        recipe = self.workload.inputs.get(name)
        known = isinstance(recipe, StructuredInput) and recipe.generator in generators
        return recipe.params if known and isinstance(recipe, StructuredInput) else None

    def work(self, reads: dict[str, float], flops: float = 0.0) -> Work:
        """Shares of these inputs, and all outputs."""
        amounts = {n: share * self.size_bytes(n) for n, share in reads.items() if n in self.definition.inputs}
        static = sum(size for name, size in amounts.items() if name in self.definition.static)
        fresh = sum(amounts.values()) - static + sum(self.size_bytes(name) for name in self.definition.outputs)
        return Work(fresh, static * _STATIC_SHARE, flops)


def _whole(facts: _Facts) -> Work:
    names = _WHOLE[facts.definition.op_type]
    return facts.work(dict.fromkeys(names, 1.0), _gemm_flops(facts) if facts.definition.op_type == "gemm" else 0.0)


def _gemm_flops(facts: _Facts) -> float:
    """Twice the outputs times the axis that both factors have and the only output has not."""
    shapes = [spec.shape or () for name, spec in facts.definition.inputs.items() if name != "bias"]
    factors = [set(shape) for shape in shapes if len(shape) == 2]
    outputs = list(facts.definition.outputs)
    if len(factors) != 2 or len(outputs) != 1:
        return 0.0
    summed = (factors[0] & factors[1]) - set(facts.definition.outputs[outputs[0]].shape or ())
    return 2.0 * math.prod(facts.shape(outputs[0])) * facts.sizes[summed.pop()] if len(summed) == 1 else 0.0


def _rope(facts: _Facts) -> Work:
    """In place, what is not rotated may stay as it is: then nothing is certain but the tables."""
    if facts.definition.mutates:
        return Work()
    rows = _rows_named(facts)
    table = facts.shape("cos_sin_cache")[:1] if facts.has("cos_sin_cache") else ()
    share = min(1.0, rows / table[0]) if table and table[0] else 0.0
    return facts.work({"q": 1.0, "k": 1.0, "cos_sin_cache": share})


def _rows_named(facts: _Facts) -> int:
    """Different rows of the table that positions name."""
    for name in ("positions", "pos_ids"):
        runs = facts.structure(name, "positions")
        if runs is not None:
            pairs = zip(runs["starts"], runs["lengths"], strict=True)
            return len({row for start, length in pairs for row in range(start, start + length)})
        wrapped = facts.structure(name, "wrapped_positions")
        if wrapped is not None:
            return int(min(wrapped["count"], max(wrapped["limit"], 1)))
    return 0


def _sampling(facts: _Facts) -> Work:
    return facts.work({"probs": _PROBS_SHARE})


def _moe(facts: _Facts) -> Work:
    """Which experts' weights are read is decided by the inputs; a token's states only if all experts are here."""
    sizes = facts.sizes
    whole = "num_experts" in sizes and sizes.get("num_local_experts") == sizes["num_experts"]
    states = {"hidden_states": 1.0, "hidden_states_scale": 1.0} if whole else {}
    return facts.work({"routing_logits": 1.0} | states)


def _attention(facts: _Facts) -> Work:
    """Queries, the unique tokens of keys and values that a query sees, and their products."""
    names = facts.definition.inputs
    queries = [name for name in names if name.startswith("q") and not name.endswith("indptr")]
    rows, seen = _seeing_rows(facts), _seen_tokens(facts)
    reads = {name: min(1.0, rows / facts.shape(name)[0]) for name in queries if facts.shape(name)[0]}
    for name in names:
        slots = math.prod(facts.shape(name)[: 2 if name.endswith("_cache") else 1])
        if name.endswith("_cache") or name in ("k", "v"):
            reads[name] = min(1.0, seen / slots) if slots else 0.0
    return facts.work(reads, _pairs(facts) * _flops_per_pair(facts))


def _lengths(facts: _Facts) -> list[tuple[int, int]] | None:
    """(query rows, key tokens) of every sequence; None where the recipe does not say."""
    runs = facts.structure("kv_indptr", "indptr")
    if runs is None:
        return None
    tokens = _tokens(facts, runs["lengths"])
    if not facts.has("qo_indptr"):
        return [(1, count) for count in tokens]
    rows = facts.structure("qo_indptr", "indptr")
    if rows is None or len(rows["lengths"]) != len(tokens):
        return None
    return list(zip(rows["lengths"], tokens, strict=True))


def _seeing_rows(facts: _Facts) -> float:
    """Query rows that see a token; the others need not be read."""
    return float(sum(min(rows, tokens) for rows, tokens in _lengths(facts) or ()))


def _tokens(facts: _Facts, counts: Sequence[int]) -> list[int]:
    """Key tokens of every sequence: the last page counts as far as it is known to be filled."""
    page_size = facts.sizes.get("page_size", 1) if facts.has("kv_indices") else 1
    filled = facts.structure("kv_last_page_len", "last_page_len")
    if filled is not None and len(filled["lengths"]) == len(counts):
        return [min(n, count * page_size) for n, count in zip(filled["lengths"], counts, strict=True)]
    return [max(0, (count - 1) * page_size + 1) for count in counts]


def _seen_tokens(facts: _Facts) -> float:
    """Unique tokens that some query sees: shared pages once, page tables that are drawn anew at their least."""
    lengths = _lengths(facts)
    if lengths is None:
        return 0.0
    seen = [tokens for rows, tokens in lengths if rows > 0]
    if not facts.has("kv_indices"):
        return float(sum(seen))
    table = facts.structure("kv_indices", "page_indices")
    if table is None or not seen:
        return 0.0
    page_size = facts.sizes.get("page_size", 1)
    shared = table.get("shared", 0)
    own = sum(max(count - shared, 0) for count in table["counts"])
    if own + shared > table["num_pages"]:  # the pool is too small: sequences draw their pages independently
        return float(max(seen))
    prefix = shared * page_size
    return float(max(min(prefix, tokens) for tokens in seen) + sum(max(tokens - prefix, 0) for tokens in seen))


def _pairs(facts: _Facts) -> float:
    """Pairs of query row and key token under a causal mask, which is the least that a mask may leave."""
    total = 0.0
    for rows, tokens in _lengths(facts) or ():
        visible = min(rows, tokens)  # rows before the first token see nothing
        total += visible * tokens - visible * (visible - 1) / 2
    return total


def _flops_per_pair(facts: _Facts) -> float:
    """Products with a key and with a value; a compressed cache serves as both."""
    sizes = facts.sizes
    heads = sizes.get("num_qo_heads", 0)
    if "head_dim_ckv" in sizes:
        return 2.0 * heads * (2 * sizes["head_dim_ckv"] + sizes.get("head_dim_kpe", 0))
    return 4.0 * heads * sizes.get("head_dim", 0)


_COUNTERS: dict[str, Callable[[_Facts], Work]] = {
    "gemm": _whole,
    "rmsnorm": _whole,
    "rope": _rope,
    "sampling": _sampling,
    "moe": _moe,
    "gqa_paged": _attention,
    "gqa_ragged": _attention,
    "mla_paged": _attention,
}

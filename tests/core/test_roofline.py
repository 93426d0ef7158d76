"""The least work of a call: certain, monotone, shared pages once; and the floor that follows from it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.roofline import MARGIN, Peaks, Work, floor_us, least_work
from schemas.definition import Definition
from schemas.workload import Workload

PEAKS = Peaks(near_bytes_per_s=1e11, far_bytes_per_s=1e10, near_capacity_bytes=1e6, flops_per_s=1e12)
Side = dict[str, tuple[list[str] | None, str]]


def definition(op_type: str, axes: dict[str, int | None], inputs: Side, outputs: Side, **more: Any) -> Definition:
    sizes = {n: {"type": "var"} if v is None else {"type": "const", "value": v} for n, v in axes.items()}
    sides = [{n: {"shape": s, "dtype": t} for n, (s, t) in side.items()} for side in (inputs, outputs)]
    body = {"name": "d", "op_type": op_type, "axes": sizes, "inputs": sides[0], "outputs": sides[1]}
    return Definition.model_validate(body | {"reference": "def run(*a):\n    return a\n"} | more)


def workload(target: Definition, axes: dict[str, int], **recipes: dict[str, Any]) -> Workload:
    inputs = {name: {"type": "random"} for name in target.inputs} | recipes
    return Workload.model_validate({"definition_digest": target.digest, "axes": axes, "inputs": inputs})


def structured(generator: str, **params: Any) -> dict[str, Any]:
    return {"type": "structured", "generator": generator, "params": params}


GEMM_SIDES: tuple[Side, Side] = (
    {"A": (["M", "K"], "bfloat16"), "B": (["N", "K"], "bfloat16")}, {"C": (["M", "N"], "bfloat16")},
)  # fmt: skip
GEMM = definition("gemm", {"M": None, "N": None, "K": None}, *GEMM_SIDES)
STATIC_GEMM = definition("gemm", {"M": None, "N": None, "K": None}, *GEMM_SIDES, static=["B"])
PAGED = definition(
    "gqa_paged",
    {"batch_size": None, "num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 8, "page_size": 4, "num_pages": None,
     "len_indptr": None, "num_kv_indices": None},
    {"q": (["batch_size", "num_qo_heads", "head_dim"], "bfloat16"),
     "k_cache": (["num_pages", "page_size", "num_kv_heads", "head_dim"], "bfloat16"),
     "v_cache": (["num_pages", "page_size", "num_kv_heads", "head_dim"], "bfloat16"),
     "kv_indptr": (["len_indptr"], "int32"), "kv_indices": (["num_kv_indices"], "int32"),
     "kv_last_page_len": (["batch_size"], "int32")},
    {"output": (["batch_size", "num_qo_heads", "head_dim"], "bfloat16")},
)  # fmt: skip
RAGGED = definition(
    "gqa_ragged",
    {"total_q": None, "total_kv": None, "num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 8, "len_indptr": None},
    {"q": (["total_q", "num_qo_heads", "head_dim"], "bfloat16"),
     "k": (["total_kv", "num_kv_heads", "head_dim"], "bfloat16"),
     "v": (["total_kv", "num_kv_heads", "head_dim"], "bfloat16"),
     "qo_indptr": (["len_indptr"], "int32"), "kv_indptr": (["len_indptr"], "int32")},
    {"output": (["total_q", "num_qo_heads", "head_dim"], "bfloat16")},
)  # fmt: skip
TOKEN_BYTES = 2 * 2 * 8 * 2  # keys and values, heads, dimension, bfloat16
ROW_BYTES = 2 * 4 * 8 * 2  # a query row and its output row


def paged(lengths: list[int], pool: int, shared: int) -> Workload:
    counts = [-(-length // 4) for length in lengths]
    axes = {
        "batch_size": len(lengths), "num_pages": pool, "len_indptr": len(lengths) + 1, "num_kv_indices": sum(counts)
    }  # fmt: skip
    return workload(
        PAGED, axes,
        kv_indptr=structured("indptr", lengths=counts),
        kv_indices=structured("page_indices", num_pages=pool, counts=counts, seed=1, shared=shared),
        kv_last_page_len=structured("last_page_len", lengths=lengths, page_size=4),
    )  # fmt: skip


def ragged(pairs: list[tuple[int, int]]) -> Workload:
    rows, tokens = [q for q, _ in pairs], [kv for _, kv in pairs]
    axes = {"total_q": sum(rows), "total_kv": sum(tokens), "len_indptr": len(pairs) + 1}
    indptrs = {name: structured("indptr", lengths=x) for name, x in (("qo_indptr", rows), ("kv_indptr", tokens))}
    return workload(RAGGED, axes, **indptrs)


sizes = st.integers(0, 300)


@given(m=sizes, n=sizes, k=sizes)
def test_a_gemm_reads_both_factors_writes_the_product_and_multiplies_all_pairs(m: int, n: int, k: int) -> None:
    found = least_work(GEMM, workload(GEMM, {"M": m, "N": n, "K": k}))
    assert found == Work(2.0 * (m * k + n * k + m * n), 0.0, 2.0 * m * n * k)


@given(m=sizes, n=sizes, k=sizes, more=st.tuples(sizes, sizes, sizes))
def test_a_larger_gemm_never_has_a_lower_floor(m: int, n: int, k: int, more: tuple[int, int, int]) -> None:
    small = floor_us(least_work(GEMM, workload(GEMM, {"M": m, "N": n, "K": k})), PEAKS)
    grown = {"M": m + more[0], "N": n + more[1], "K": k + more[2]}
    assert 0 <= small <= floor_us(least_work(GEMM, workload(GEMM, grown)), PEAKS)


def test_a_static_factor_counts_half_since_it_may_be_kept_in_a_narrower_form() -> None:
    axes = {"M": 3, "N": 5, "K": 7}
    fresh, static = (least_work(d, workload(d, axes)) for d in (GEMM, STATIC_GEMM))
    assert static.static_bytes == 5 * 7 * 2 / 2
    assert static.fresh_bytes == fresh.fresh_bytes - 5 * 7 * 2
    assert fresh.static_bytes == 0


@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=6), shared=st.integers(0, 3), spare=st.integers(0, 9))
def test_pages_that_sequences_share_count_once(lengths: list[int], shared: int, spare: int) -> None:
    counts = [-(-length // 4) for length in lengths]
    pool = shared + sum(counts) + spare
    tokens = (least_work(PAGED, paged(lengths, pool, shared)).fresh_bytes - len(lengths) * ROW_BYTES) / TOKEN_BYTES
    common = max(min(length, 4 * shared) for length in lengths)
    assert tokens == pytest.approx(common + sum(max(length - 4 * shared, 0) for length in lengths))
    assert tokens <= sum(lengths)


@given(lengths=st.lists(st.integers(1, 40), min_size=2, max_size=6))
def test_a_pool_too_small_for_all_counts_only_its_longest_sequence(lengths: list[int]) -> None:
    counts = [-(-length // 4) for length in lengths]
    found = least_work(PAGED, paged(lengths, max(counts), 0)).fresh_bytes - len(lengths) * ROW_BYTES
    assert found == pytest.approx(max(lengths) * TOKEN_BYTES)


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=6), shared=st.integers(0, 3), seed=st.integers(0, 99),
    scarce=st.booleans(),
)  # fmt: skip
def test_never_more_pages_count_than_a_real_table_names(
    lengths: list[int], shared: int, seed: int, scarce: bool
) -> None:
    from fib_core.workloads.generators import page_indices

    counts = [-(-length // 4) for length in lengths]
    pool = max(counts) if scarce else shared + sum(counts)
    named = len(set(page_indices(pool, counts, seed, shared).tolist()))
    tokens = (least_work(PAGED, paged(lengths, pool, shared)).fresh_bytes - len(lengths) * ROW_BYTES) / TOKEN_BYTES
    assert tokens <= 4 * named + 1e-9


@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), min_size=1, max_size=5))
def test_a_causal_mask_leaves_exactly_the_pairs_that_are_counted(pairs: list[tuple[int, int]]) -> None:
    visible = [max(0, kv - q + row + 1) for q, kv in pairs for row in range(q)]
    found = least_work(RAGGED, ragged(pairs))
    assert found.flops == 4 * 4 * 8 * sum(visible)
    seeing = sum(1 for count in visible if count)
    written = sum(q for q, _ in pairs) * ROW_BYTES / 2
    read = sum(kv for q, kv in pairs if q) * TOKEN_BYTES + seeing * ROW_BYTES / 2
    assert found.fresh_bytes == pytest.approx(written + read)


def test_where_no_recipe_tells_the_lengths_only_the_outputs_count() -> None:
    axes = {"total_q": 3, "total_kv": 9, "len_indptr": 2}
    found = least_work(RAGGED, workload(RAGGED, axes))
    assert found == Work(3 * ROW_BYTES / 2)


def test_an_unknown_operator_must_write_its_outputs_and_nothing_else_is_certain() -> None:
    sides: tuple[Side, Side] = {"x": (["N"], "float32"), "y": (["N"], "float32")}, {"z": (["N"], "float32")}
    axes = {"N": 100}
    plain, static = definition("new", {"N": None}, *sides), definition("new", {"N": None}, *sides, static=["x", "y"])
    in_place = definition("new", {"N": None}, *sides, mutates={"x": "z"})
    assert least_work(plain, workload(plain, axes)) == Work(400.0)
    assert least_work(static, workload(static, axes)) == Work(), "it may have been made once and kept"
    assert least_work(in_place, workload(in_place, axes)) == Work(), "little of it may change"


def test_of_a_table_of_angles_only_the_rows_that_positions_name_count() -> None:
    target = definition(
        "rope", {"T": None, "H": 2, "D": 8, "L": None},
        {"q": (["T", "H", "D"], "bfloat16"), "k": (["T", "H", "D"], "bfloat16"),
         "cos_sin_cache": (["L", "D"], "float32"), "positions": (["T"], "int64")},
        {"q_out": (["T", "H", "D"], "bfloat16"), "k_out": (["T", "H", "D"], "bfloat16")},
    )  # fmt: skip
    runs = structured("positions", starts=[0, 2], lengths=[4, 4])
    found = least_work(target, workload(target, {"T": 8, "L": 100}, positions=runs))
    assert found.fresh_bytes == pytest.approx(4 * 8 * 2 * 8 * 2 + 6 * 8 * 4)


def test_hidden_states_count_only_where_every_expert_is_local() -> None:
    def made(local: int) -> Work:
        target = definition(
            "moe", {"T": None, "num_experts": 8, "num_local_experts": local, "H": 16},
            {"routing_logits": (["T", "num_experts"], "float32"), "hidden_states": (["T", "H"], "float8_e4m3fn"),
             "gemm1_weights": (["num_local_experts", "H", "H"], "float8_e4m3fn")},
            {"output": (["T", "H"], "bfloat16")}, static=["gemm1_weights"],
        )  # fmt: skip
        return least_work(target, workload(target, {"T": 4}))

    assert made(8) == Work(4 * 8 * 4 + 4 * 16 + 4 * 16 * 2)
    assert made(2) == Work(4 * 8 * 4 + 4 * 16 * 2)


@given(fresh=st.floats(0, 1e9), static=st.floats(0, 1e9), flops=st.floats(0, 1e15), more=st.floats(0, 1e9))
def test_more_work_never_lowers_the_floor_and_no_floor_is_negative(
    fresh: float, static: float, flops: float, more: float
) -> None:
    least = floor_us(Work(fresh, static, flops), PEAKS)
    grown = (Work(fresh + more, static, flops), Work(fresh, static + more, flops), Work(fresh, static, flops + more))
    assert all(0 <= least <= floor_us(work, PEAKS) for work in grown)


def test_the_floor_is_a_share_of_the_slower_of_moving_and_computing() -> None:
    assert floor_us(Work(1e6), PEAKS) == pytest.approx(MARGIN * 10.0)
    assert floor_us(Work(1e6, flops=1e9), PEAKS) == pytest.approx(MARGIN * 1000.0)
    beyond = floor_us(Work(1e8), PEAKS)
    assert beyond == pytest.approx(MARGIN * (1e8 - 2e6) / 1e10 * 1e6), "what does not fit comes from further away"

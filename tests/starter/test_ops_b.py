"""Attention and expert kernels of the starter data against their references, and the references against plain loops."""

import importlib.util
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from fib_core.workloads.constraints import holds
from fib_core.workloads.structure import generate
from schemas.definition import Definition
from schemas.solution import Solution
from schemas.workload import PublicWorkload, StructuredInput

OPS = Path(__file__).parents[2] / "infra" / "starter" / "ops_b"


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("ops_b_bench_under_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


bench = load(OPS / "bench.py")
ALL: dict[str, tuple[Path, dict[str, Any]]] = bench.definitions()
CPU = sorted(name for name, (_, row) in ALL.items() if "scale:cpu" in row["tags"])
Point = tuple[dict[str, int], dict[str, tuple[int, ...]], dict[str, float]]


def point(name: str, kv: tuple[int, ...] = (37, 0, 5, 64), qo: tuple[int, ...] = (3, 0, 5, 17)) -> Point:
    """A ragged call with an empty row and a full last page; a handful of tokens for the experts."""
    row = ALL[name][1]
    if row["op_type"] == "moe":
        return {"seq_len": 5}, {}, {"local_expert_offset": 0, "routed_scaling_factor": 2.5}
    page = row["axes"].get("page_size", {"value": 1})["value"]
    sizes = {"batch_size": len(kv), "len_indptr": len(kv) + 1, "total_q": sum(qo), "total_kv": sum(kv)}
    sizes["num_pages"] = 320
    sizes["num_kv_indices"] = sum(-(-length // page) for length in kv)
    axes = {axis: sizes[axis] for axis, kind in row["axes"].items() if kind["type"] == "var"}
    return axes, {"kv_lens": kv} | ({"qo_lens": qo} if "prefill" in name else {}), {}


def case(name: str, **lengths: tuple[int, ...]) -> tuple[Definition, dict[str, Any], dict[str, int]]:
    definition = Definition.model_validate(ALL[name][1])
    axes, structure, scalars = point(name, **lengths)
    return definition, bench.inputs_for(definition, axes, structure, scalars), axes


def shares(definition: Definition, want: Any, got: Any) -> list[float]:
    return [bench.bad_share(w, g, output) for w, g, output in zip(want, got, definition.outputs, strict=True)]


def tuple_of(found: Any) -> tuple[torch.Tensor, ...]:
    return found if isinstance(found, tuple) else (found,)


def results(
    definition: Definition, solution: dict[str, Any], inputs: dict[str, Any], axes: dict[str, int], scratch: Path
) -> tuple[torch.Tensor, ...]:
    function = bench.build(solution, scratch)
    if not solution["spec"]["destination_passing_style"]:
        return tuple_of(function(*inputs.values()))
    buffers = bench.outputs_for(definition, axes)
    function(*inputs.values(), *buffers)
    return tuple(buffers)


def worst(name: str, label: str, scratch: Path, **lengths: tuple[int, ...]) -> float:
    """Largest error of a solution over its tolerance."""
    definition, inputs, axes = case(name, **lengths)
    got = results(definition, bench.solution_of(name, label), inputs, axes, scratch)
    return max(shares(definition, bench.expected(definition, inputs), got))


PYTHON = [(name, row["name"]) for name in CPU for row in bench.solutions(name) if row["spec"]["language"] == "python"]
NATIVE = [(name, row["name"]) for name in CPU for row in bench.solutions(name) if row["spec"]["language"] == "cpp"]
# A build takes seconds; the one-token-a-page decode and the ragged prefill share their inner loops with another kernel.
TWINS = ("gqa_paged_decode_h16_kv8_d128_ps1", "gqa_ragged_prefill_causal_h16_kv8_d128")
NATIVE_CASES = [pytest.param(*pair, marks=[pytest.mark.slow] if pair[0] in TWINS else []) for pair in NATIVE]
HALF_PRECISION = "mla_paged_decode_h16_ckv512_kpe64_ps1__matmul_bf16"


@pytest.mark.parametrize(("name", "label"), [pair for pair in PYTHON if pair[1] != HALF_PRECISION])
def test_every_pytorch_form_agrees_with_the_fp64_reference(name: str, label: str, tmp_path: Path) -> None:
    assert worst(name, label, tmp_path) < 1.0


@pytest.mark.parametrize(("name", "label"), NATIVE_CASES)
def test_every_native_kernel_agrees_with_the_fp64_reference_at_lengths_of_nothing_one_and_many(
    name: str, label: str, tmp_path: Path
) -> None:
    function = bench.build(bench.solution_of(name, label), tmp_path)
    for kv, qo in (((37, 0, 5, 64), (3, 0, 5, 17)), ((0,), (0,)), ((1, 130), (1, 130)), ((33, 5), (1, 5))):
        definition, inputs, axes = case(name, kv=kv, qo=qo)
        buffers = bench.outputs_for(definition, axes)
        function(*inputs.values(), *buffers)
        assert max(shares(definition, bench.expected(definition, inputs), buffers)) < 0.6


def test_scores_rounded_to_bf16_do_not_pass_as_attention(tmp_path: Path) -> None:
    name = HALF_PRECISION.partition("__")[0]
    assert worst(name, HALF_PRECISION, tmp_path, kv=(300, 7, 64)) > 1.0


@pytest.mark.parametrize("name", CPU)
def test_a_reference_computes_in_fp64_for_fp64_inputs_and_leaves_its_inputs_alone(name: str) -> None:
    definition, inputs, _ = case(name)
    run = bench.python_callable(definition.reference, "run", "reference")
    wide = {k: v.double() if torch.is_tensor(v) and v.is_floating_point() else v for k, v in inputs.items()}
    before = {k: v.clone() for k, v in wide.items() if torch.is_tensor(v)}
    found = run(*wide.values())
    assert all(value.dtype == torch.float64 for value in tuple_of(found))
    assert all(torch.equal(wide[k], v) for k, v in before.items())


@pytest.mark.parametrize("name", CPU)
def test_a_reference_returns_the_declared_dtypes_for_the_declared_inputs(name: str) -> None:
    definition, inputs, axes = case(name)
    found = bench.python_callable(definition.reference, "run", "reference")(*inputs.values())
    for value, (output, spec) in zip(tuple_of(found), definition.outputs.items(), strict=True):
        assert value.dtype == bench.DTYPES[spec.dtype]
        assert tuple(value.shape) == definition.shape_of(output, axes)


@pytest.mark.parametrize("name", [name for name in CPU if "moe" not in name])
def test_rows_without_keys_give_zeros_and_minus_infinity(name: str) -> None:
    definition, inputs, _ = case(name, kv=(0, 9), qo=(2, 4))
    output, lse = bench.expected(definition, inputs)
    rows = 2 if "prefill" in name else 1
    assert output[:rows].eq(0).all()
    assert lse[:rows].eq(-math.inf).all()
    assert torch.isfinite(lse[rows:]).all()
    assert definition.policy.outputs["lse"].legal_nonfinite == ("-inf",)


@pytest.mark.parametrize("name", [name for name in CPU if name.startswith("gqa")])
def test_a_grouped_query_reference_equals_plain_loops_over_tokens(name: str) -> None:
    definition, inputs, _ = case(name, kv=(19, 6), qo=(2, 3))
    output, lse = bench.expected(definition, inputs)
    want_output, want_lse = looped(definition, inputs, (19, 6), (2, 3) if "prefill" in name else (1, 1))
    assert torch.allclose(output, want_output, atol=1e-9)
    assert torch.allclose(lse, want_lse, atol=1e-9)


def looped(
    definition: Definition, inputs: dict[str, Any], kv: tuple[int, ...], qo: tuple[int, ...]
) -> tuple[torch.Tensor, torch.Tensor]:
    """One query, one head, one key at a time; base 2 by definition, the mask by counting from the end."""
    size, heads = definition.const_axes.get("page_size", 1), definition.const_axes
    q = inputs["q"].double()
    output, lse = torch.zeros_like(q), torch.zeros(q.shape[:2], dtype=torch.float64)
    row, group = 0, heads["num_qo_heads"] // heads["num_kv_heads"]
    for b, (length, queries) in enumerate(zip(kv, qo, strict=True)):
        for i in range(queries):
            seen = length - queries + i + 1
            for h in range(heads["num_qo_heads"]):
                pairs = [cell(inputs, b, t, size, h // group) for t in range(seen)]
                scores = torch.stack([q[row, h] @ key * inputs["sm_scale"] / math.log(2) for key, _ in pairs])
                weights = 2.0**scores
                lse[row, h] = weights.sum().log2()
                output[row, h] = sum(w * value for w, (_, value) in zip(weights, pairs, strict=True)) / weights.sum()
            row += 1
    return output, lse


def cell(inputs: dict[str, Any], b: int, t: int, page_size: int, h: int) -> tuple[torch.Tensor, torch.Tensor]:
    start = int(inputs["kv_indptr"][b])
    if "k" in inputs:
        return inputs["k"][start + t, h].double(), inputs["v"][start + t, h].double()
    page = int(inputs["kv_indices"][start + t // page_size])
    return inputs["k_cache"][page, t % page_size, h].double(), inputs["v_cache"][page, t % page_size, h].double()


def test_routing_stays_inside_the_kept_groups_and_weighs_by_unbiased_scores() -> None:
    name = next(name for name in CPU if name.startswith("moe"))
    space: dict[str, Any] = {}
    exec(compile(ALL[name][1]["reference"], "reference", "exec"), space)
    logits, bias = torch.randn(64, 16, dtype=torch.float64), torch.zeros(16, dtype=torch.float64)
    bias[5] = 10.0
    weights = space["route"](logits, bias, 2.5)
    assert torch.allclose(weights.sum(1), torch.full((64,), 2.5, dtype=torch.float64))
    assert (weights > 0).sum(1).eq(4).all()
    assert (weights.view(64, 4, 4) > 0).any(2).sum(1).le(2).all()
    assert (weights[:, 5] > 0).all()
    chosen = torch.where(weights > 0, torch.sigmoid(logits), 0.0)
    assert torch.allclose(weights, chosen / chosen.sum(1, keepdim=True) * 2.5)


def test_the_comparison_notices_a_natural_logarithm_a_nan_and_a_shifted_mask() -> None:
    name = next(name for name in CPU if name.startswith("gqa_ragged"))
    definition, inputs, _ = case(name)
    output, lse = bench.expected(definition, inputs)
    late = inputs | {"k": inputs["k"].roll(1, 0), "v": inputs["v"].roll(1, 0)}
    assert bench.bad_share(lse, lse * math.log(2), "lse") > 1
    assert bench.bad_share(output, output.clone().fill_(math.nan), "output") == math.inf
    assert bench.bad_share(output, bench.expected(definition, late)[0], "output") > 1


@pytest.mark.parametrize("name", CPU)
def test_each_definition_declares_at_least_two_baselines_and_no_other_incumbent(name: str) -> None:
    spec = bench.make.load_module(ALL[name][0] / "spec.py")
    authors = {row["name"]: row["author"] for row in spec.SOLUTIONS if name in row["definitions"]}
    assert len(spec.INCUMBENTS[name]) >= 2
    assert {authors[short] for short in spec.INCUMBENTS[name]} == {"baseline"}
    assert set(spec.INCUMBENTS[name]) == {short for short, author in authors.items() if author == "baseline"}


def test_every_workload_row_has_a_recipe_of_the_declared_shape_for_every_input() -> None:
    count = 0
    for name in sorted(ALL.keys() - set(CPU)):
        definition = Definition.model_validate(ALL[name][1])
        rows = bench.make.load_module(ALL[name][0] / "spec.py").WORKLOADS[name]
        for row in (PublicWorkload.model_validate(row) for row in rows):
            assert list(row.inputs) == list(definition.inputs)
            for given, recipe in row.inputs.items():
                if isinstance(recipe, StructuredInput):
                    assert generate(recipe).shape == definition.shape_of(given, row.axes)
            count += 1
    assert count >= 30


def test_the_three_attention_folders_share_one_header() -> None:
    texts = {path.read_bytes() for path in OPS.glob("*/kernels/attention.h")}
    assert len(list(OPS.glob("*/kernels/attention.h"))) == 3
    assert len(texts) == 1


def test_declared_support_speaks_of_axes_alone() -> None:
    found = [row for name in CPU for row in bench.solutions(name) if row["spec"].get("supports")]
    rows = [Solution.model_validate(row) for row in found]
    assert rows
    sizes = {"batch_size": 2, "num_kv_indices": 8, "num_pages": 128, "len_indptr": 3}
    assert all(holds(text, sizes) is True for row in rows for text in row.spec.supports)


def test_page_tables_may_share_a_prefix(tmp_path: Path) -> None:
    name = next(name for name in CPU if "paged" in name)
    definition, inputs, axes = case(name, kv=(40, 40))
    half = len(inputs["kv_indices"]) // 2
    inputs["kv_indices"][half : half + 1] = inputs["kv_indices"][0]
    want = bench.expected(definition, inputs)
    for solution in bench.solutions(name):
        if solution["spec"]["language"] == "python":
            assert max(shares(definition, want, results(definition, solution, inputs, axes, tmp_path))) < 1.0

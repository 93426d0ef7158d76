"""The starter dataset is what its sources say, and the references of gemm, rmsnorm, rope and sampling are right."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.definition import Definition
from schemas.solution import Solution

STARTER = Path(__file__).parents[2] / "infra" / "starter"
DATA = STARTER / "data"
OPS = ("gemm", "rmsnorm", "rope", "sampling")
LIMIT_BYTES = 5_000_000


def load_make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("starter_make", STARTER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["starter_make"] = module
    spec.loader.exec_module(module)
    return module


make = load_make()


def reference(op: str, file: str, symbol: str, **axes: int) -> Any:
    scope: dict[str, Any] = {}
    exec(make.bind_constants((STARTER / "ops_a" / op / "references" / file).read_text(), axes), scope)
    return scope[symbol]


def rows(op: str) -> list[Definition]:
    return [Definition.model_validate_json(path.read_bytes()) for path in sorted(DATA.glob(f"definitions/{op}/*.json"))]


def test_the_committed_data_is_what_the_generator_makes() -> None:
    assert make.differences(DATA) == []


def test_a_changed_file_and_an_extra_file_are_noticed(tmp_path: Path) -> None:
    copy = tmp_path / "data"
    make.write(copy)
    (copy / "README.md").write_text("edited")
    (copy / "extra.json").write_text("{}")
    assert make.differences(copy) == ["README.md", "extra.json"]


def test_the_generator_is_deterministic_and_its_data_small() -> None:
    first, second = make.dataset(), make.dataset()
    assert first == second
    assert sum(map(len, first.values())) <= LIMIT_BYTES
    assert "synthetic" in first["README.md"].decode()


@pytest.mark.parametrize("op", OPS)
def test_every_definition_and_solution_is_valid_and_every_incumbent_is_a_baseline(op: str) -> None:
    incumbents = json.loads((DATA / "incumbents.json").read_text())
    found = rows(op)
    assert {"scale:cpu", "scale:gpu"} == {tag for row in found for tag in row.tags if tag.startswith("scale:")}
    for definition in found:
        paths = DATA.glob(f"solutions/*/{op}/{definition.name}/*.json")
        solutions = {one.name: one for one in (Solution.model_validate_json(path.read_bytes()) for path in paths)}
        assert all(solutions[name].author == "baseline" for name in incumbents[definition.name])
        assert len(incumbents[definition.name]) >= (2 if "scale:cpu" in definition.tags else 1)


def test_nothing_in_the_data_names_the_faulty_ones() -> None:
    faulty = json.loads((Path(__file__).parent / "faulty.json").read_text())
    names = {path.stem for path in DATA.glob("solutions/*/*/*/*.json")}
    assert faulty.keys() <= names
    assert not list(DATA.rglob("faulty*"))
    authors = {path.parts[-4] for path in DATA.glob("solutions/*/*/*/*.json") if path.stem in faulty}
    sound = {path.parts[-4] for path in DATA.glob("solutions/*/*/*/*.json") if path.stem not in faulty}
    assert all(author.startswith("lab-") for author in authors)
    assert authors & sound or len(authors) > 2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_gemm_and_norm_references_equal_numpy_and_keep_fp64(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(5, 32, generator=generator, dtype=torch.float64).to(dtype)
    other = torch.randn(5, 32, generator=generator, dtype=torch.float64).to(dtype)
    weight = torch.randn(32, generator=generator, dtype=torch.float64).to(dtype)
    slack = 1e-12 if dtype is torch.float64 else 1e-2

    def close(got: torch.Tensor, want: np.ndarray) -> None:
        assert got.dtype == dtype
        np.testing.assert_allclose(got.double().numpy(), want, rtol=slack, atol=slack)

    a, b, w = x.double().numpy(), other.double().numpy(), weight.double().numpy()
    close(reference("gemm", "gemm.py", "run", n=5, k=32)(x, other), a @ b.T)
    norm = lambda v: v / np.sqrt((v**2).mean(-1, keepdims=True) + 1e-6) * w  # noqa: E731
    close(reference("rmsnorm", "rmsnorm.py", "run", hidden_size=32)(x, weight), norm(a))
    before = other.clone()
    output, residual = reference("rmsnorm", "fused_add_rmsnorm.py", "run", hidden_size=32)(x, other, weight)
    close(output, norm(a + b))
    close(residual, a + b)
    assert torch.equal(other, before)


def test_the_rope_reference_is_a_complex_rotation_of_the_halves_and_leaves_the_rest() -> None:
    generator = torch.Generator().manual_seed(4)
    q, k = (torch.randn(3, heads, 12, generator=generator, dtype=torch.float64) for heads in (2, 1))
    angles = torch.rand(9, 4, generator=generator, dtype=torch.float64)
    cache = torch.cat((angles.cos(), angles.sin()), dim=1)
    positions = torch.tensor([8, 0, 5])
    run = reference("rope", "rope.py", "run", head_size=12, rotary_dim=8)
    for x, got in zip((q, k), run(q, k, cache, positions), strict=True):
        pairs = (x[..., :4] + 1j * x[..., 4:8]).numpy() * np.exp(1j * angles[positions].numpy())[:, None, :]
        want = np.concatenate([pairs.real, pairs.imag, x[..., 8:].numpy()], axis=-1)
        np.testing.assert_allclose(got.numpy(), want, atol=1e-12)


def brute_force(row: list[float], k: int | None, p: float | None) -> list[float]:
    """The filtered distribution by plain counting over tokens ranked by (probability down, index up)."""
    ranked = sorted(range(len(row)), key=lambda token: (-row[token], token))
    if k is not None and 0 < k < len(row):
        ranked = ranked[:k]
    total, before, kept = sum(row[token] for token in ranked), 0.0, []
    for token in ranked:
        if p is None or p >= 1 or not kept or (p > 0 and before / total <= p):
            kept.append(token)
        before += row[token]
    mass = sum(row[token] for token in kept)
    return [row[token] / mass if token in kept else 0.0 for token in range(len(row))]


# Eighths are exact in binary, so that neither side's rounding moves a boundary, and they tie often.
@settings(max_examples=80, deadline=None)
@given(
    counts=st.lists(st.integers(1, 4), min_size=8, max_size=8),
    k=st.integers(-1, 9),
    p=st.sampled_from([-0.5, 0.0, 0.3, 0.55, 0.8, 1.0, 1.5]),
)
def test_the_sampling_references_filter_as_counting_does(counts: list[int], k: int, p: float) -> None:
    row = [count / sum(counts) for count in counts]
    probs = torch.tensor([row, row[::-1]], dtype=torch.float64)
    top_k, top_p = torch.tensor([k, k], dtype=torch.int32), torch.tensor([p, p], dtype=torch.float32)
    filters = {"top_k": ((top_k,), k, None), "top_p": ((top_p,), None, p), "top_k_top_p": ((top_k, top_p), k, p)}
    for kind, (tensors, limit, mass) in filters.items():
        got = reference("sampling", f"{kind}.py", "distribution", vocab_size=8)(probs, *tensors)
        want = [brute_force(one, limit, mass) for one in (row, row[::-1])]
        if not _on_boundary(row, limit, mass) and not _on_boundary(row[::-1], limit, mass):
            np.testing.assert_allclose(got.numpy(), want, atol=1e-6)


def _on_boundary(row: list[float], k: int | None, p: float | None) -> bool:
    """True if a cumulative mass is within rounding of p: then either side is right."""
    if p is None:
        return False
    ranked = sorted(row, reverse=True)[: k if k is not None and 0 < k < len(row) else None]
    return bool(np.any(np.abs(np.cumsum(ranked) / sum(ranked) - p) < 1e-6))

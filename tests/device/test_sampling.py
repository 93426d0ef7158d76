"""Samplers: an exact one passes, a distorted one does not; boundary ties are legal; the power is what it claims."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import SAMPLE, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from fib_core.device.sampling import MASK_SLACK, Rows, distribution_test, liveliest_row, mask_finding, thresholds
from fib_core.jobs import FULL_POWER_DRAWS
from schemas.evaluation import Status


def _rows(seed: int, top_k: int | None, top_p: float | None, vocab: int = 400, spread: float = 2.0) -> Rows:
    generator = torch.Generator().manual_seed(seed)
    probs = torch.softmax(torch.randn(1, vocab, generator=generator) * spread, dim=1).double()
    k = None if top_k is None else torch.tensor([top_k])
    p = None if top_p is None else torch.tensor([top_p])
    return Rows(probs, k, p)


def _filtered(rows: Rows) -> torch.Tensor:
    """Straight from the public references, in fp64."""
    row = rows.probs[0].clone()
    vocab = len(row)
    if rows.top_k is not None and 0 < int(rows.top_k[0]) < vocab:
        keep = row.argsort(descending=True)[: int(rows.top_k[0])]
        row = torch.zeros_like(row).index_put((keep,), row[keep])
        row /= row.sum()
    if rows.top_p is not None and float(rows.top_p[0]) < 1:
        values, index = row.sort(descending=True)
        remove = values.cumsum(0) > float(rows.top_p[0])
        remove = torch.cat([torch.tensor([False]), remove[:-1]])
        row[index[remove]] = 0
    return row / row.sum()


def _draws(weights: torch.Tensor, seed: int, calls: int = 500, batch: int = 24) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.multinomial(weights, calls * batch, replacement=True, generator=generator).reshape(calls, batch)


def _test(rows: Rows, draws: torch.Tensor) -> str | None:
    batch = draws.shape[1]
    wide = Rows(
        rows.probs.expand(batch, -1), *(None if f is None else f.expand(batch) for f in (rows.top_k, rows.top_p))
    )
    finding = mask_finding(wide, thresholds(wide, MASK_SLACK), draws)
    finding = finding or distribution_test(rows, 0, draws, torch.Generator().manual_seed(7)).finding
    return finding.rule if finding else None


filters = st.tuples(st.sampled_from([None, 1, 7, 40, 400]), st.sampled_from([None, 0.3, 0.9, 1.0]))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), chosen=filters)
def test_an_exact_sampler_is_accepted(seed: int, chosen: tuple[int | None, float | None]) -> None:
    rows = _rows(seed, *chosen)
    assert _test(rows, _draws(_filtered(rows), seed)) is None


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), top_k=st.sampled_from([7, 40]))
def test_uniform_over_the_support_is_rejected(seed: int, top_k: int) -> None:
    rows = _rows(seed, top_k, None)
    assert _test(rows, _draws((_filtered(rows) > 0).double(), seed)) == "distribution"


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_shift_of_five_percent_of_the_mass_between_strata_is_rejected(seed: int) -> None:
    rows = _rows(seed, 100, None)
    weights = _filtered(rows)
    order = weights.argsort(descending=True)
    top = order[weights[order].cumsum(0) - weights[order] < 0.5]
    shifted = weights.clone()
    shifted[top] *= 1 - 0.06 / weights[top].sum()
    rest = torch.ones_like(weights, dtype=torch.bool)
    rest[top] = False
    shifted[rest] *= 1 + 0.06 / weights[rest].sum()
    assert _test(rows, _draws(shifted, seed, calls=FULL_POWER_DRAWS // 24)) == "distribution"


def test_the_recommended_number_of_draws_attains_the_power_of_the_contract() -> None:
    rows = _rows(3, 100, None)
    draws = _draws(_filtered(rows), 3, calls=FULL_POWER_DRAWS // 16, batch=16)
    result = distribution_test(rows, 0, draws, torch.Generator().manual_seed(1))
    assert result.finding is None
    assert result.draws == FULL_POWER_DRAWS
    assert result.power >= 0.999


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), chosen=filters)
def test_a_token_outside_the_support_is_found_and_every_token_inside_is_legal(
    seed: int, chosen: tuple[int | None, float | None]
) -> None:
    rows = _rows(seed, *chosen, vocab=50)
    legal = _filtered(rows) > 0
    limits = thresholds(rows, 0.0)
    for token in range(50):
        found = mask_finding(rows, limits, torch.tensor([[token]]))
        assert (found is None) == bool(legal[token])
    for token in (-1, 50):
        assert mask_finding(rows, limits, torch.tensor([[token]])) is not None


def test_ties_at_the_boundary_are_legal_and_the_choice_among_them_is_the_samplers() -> None:
    probs = torch.tensor([[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]], dtype=torch.float64)
    rows = Rows(probs, torch.tensor([3]), None)
    for tied in (2, 5):
        weights = torch.tensor([0.4, 0.2, 0, 0, 0, 0], dtype=torch.float64)
        weights[tied] = 0.1
        assert _test(rows, _draws(weights / weights.sum(), tied)) is None
    assert _test(rows, _draws(probs[0], 1)) == "distribution", "all four ties kept: one token too many"


def test_the_liveliest_row_is_chosen() -> None:
    sharp = torch.tensor([0.97, 0.01, 0.01, 0.01], dtype=torch.float64)
    rows = Rows(torch.stack([sharp, torch.full((4,), 0.25, dtype=torch.float64), sharp]), None, None)
    assert liveliest_row(rows) == 1


def test_equal_draws_under_different_seeds_are_rejected_unless_nothing_else_is_possible() -> None:
    rows = _rows(5, 40, None)
    once = _draws(_filtered(rows), 5, calls=1)
    assert _test(rows, once.expand(500, -1)) == "distribution"
    greedy = _rows(5, 1, None)
    assert _test(greedy, greedy.probs.argmax().expand(500, 24)) is None


SOURCE = """
import torch
def run(probs, top_k):
    values, index = probs.topk(int(top_k[0]), dim=1)
    {body}
    return index.gather(1, picked)[:, 0]
"""
BODIES = {
    "picked = torch.multinomial(values, 1)": (Status.PASSED, None),
    "picked = torch.multinomial(torch.ones_like(values), 1)": (Status.INCORRECT_NUMERICAL, "distribution"),
    "picked = values.argmax(1, keepdim=True)": (Status.INCORRECT_NUMERICAL, "distribution"),
    "torch.manual_seed(1); picked = torch.multinomial(values, 1)": (Status.INCORRECT_NUMERICAL, "distribution"),
    "index = torch.multinomial(probs ** 0.1, 1); picked = index * 0": (Status.INCORRECT_NUMERICAL, "mask"),
}


@pytest.mark.parametrize("body", BODIES)
def test_samplers_before_the_worker(worker: DeviceWorker, body: str) -> None:
    recipes = {
        "probs": {"type": "random", "distribution": "probs"},
        "top_k": {"type": "structured", "generator": "constant", "params": {"value": 40, "count": 32}},
    }
    sampler = solution(SAMPLE, SOURCE.format(body=body))
    asked = request(SAMPLE, [sampler], [workload(SAMPLE, recipes, B=32)], sampling_draws=FULL_POWER_DRAWS)
    result = worker.visit(asked)
    assert result.fault is None, result.fault
    evaluation = result.evaluations[0]
    assert (evaluation.status, evaluation.rule) == BODIES[body]
    if evaluation.status is Status.PASSED:
        assert evaluation.sample_draws is not None
        assert evaluation.sample_draws >= FULL_POWER_DRAWS
        assert evaluation.sample_power is not None
        assert math.isclose(evaluation.sample_power, 1, abs_tol=1e-3)
        assert len(evaluation.samples_us) == 5

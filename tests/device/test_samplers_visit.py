"""Samplers before the worker: exact ones pass in every form; mixed rows and seeds of their own do not."""

from typing import Any

import pytest
from kernels import SAMPLE, request, solution, workload

from fib_core.adapters.device_worker import DeviceWorker
from schemas.evaluation import Evaluation, Status

SOURCE = """
import torch
{state}
def run(probs, top_k{out}):
    values, index = probs.topk(int(top_k[0]), dim=1)
    {body}
"""
WRONG = (Status.INCORRECT_NUMERICAL, "distribution")
CAP = 20_000  # more than 40 tokens need


def judged(
    worker: DeviceWorker, body: str, state: str = "", batch: int = 32, top_k: int = 40, **more: Any
) -> Evaluation:
    recipes = {
        "probs": {"type": "random", "distribution": "probs"},
        "top_k": {"type": "structured", "generator": "constant", "params": {"value": top_k, "count": batch}},
    }
    passing = more.pop("passing", False)
    last = "out.copy_(picked)" if passing else "return picked"
    text = SOURCE.format(state=state, out=", out" if passing else "", body=f"{body}; {last}")
    sampler = solution(SAMPLE, text, destination_passing_style=passing)
    asked = request(SAMPLE, [sampler], [workload(SAMPLE, recipes, B=batch)], **({"sampling_draws": CAP} | more))
    result = worker.visit(asked)
    assert result.fault is None, result.fault
    return result.evaluations[0]


EXACT = "picked = index.gather(1, torch.multinomial(values, 1))[:, 0]"
OWN = "picked = index.gather(1, torch.multinomial(values, 1, generator=OWN))[:, 0]"
SEEDED = "OWN = torch.Generator().manual_seed(int(torch.randint(2**62, (1,))))"
ADVANCING = "OWN = torch.Generator().manual_seed(17)"
SHARED = "picked = index.gather(1, torch.searchsorted((values / values.sum(1, keepdim=True)).cumsum(1), {}))[:, 0]"
BODIES = {
    "uniform": ("picked = index.gather(1, torch.multinomial(torch.ones_like(values), 1))[:, 0]", WRONG),
    "greedy": ("picked = index[:, 0].contiguous()", WRONG),
    "constant seed": (f"torch.manual_seed(1); {EXACT}", WRONG),
    "outside the support": ("picked = torch.multinomial(probs ** 0.1, 1)[:, 0]", (WRONG[0], "mask")),
}


@pytest.mark.parametrize("name", BODIES)
def test_wrong_samplers_are_found(worker: DeviceWorker, name: str) -> None:
    body, expected = BODIES[name]
    evaluation = judged(worker, body)
    assert (evaluation.status, evaluation.rule) == expected


@pytest.mark.parametrize("batch", [8, 32])
def test_an_exact_sampler_passes_with_the_power_that_was_promised(worker: DeviceWorker, batch: int) -> None:
    evaluation = judged(worker, EXACT, batch=batch)
    assert (evaluation.status, evaluation.reason) == (Status.PASSED, "")
    assert evaluation.sample_power is not None
    assert evaluation.sample_power >= 0.999
    assert evaluation.sample_coarse_power is not None
    assert evaluation.sample_coarse_power > 0.999
    assert evaluation.sample_draws is not None
    assert evaluation.sample_draws < 2 * CAP, "no more than the rows need"
    assert len(evaluation.samples_us) == 5


def test_a_sampler_that_is_exact_only_in_distribution_tests_is_found(worker: DeviceWorker) -> None:
    """It knows one by rows that come more than once."""
    tested = "tested = (probs[:, 0] == probs[0, 0]).sum() > 1"
    evaluation = judged(worker, f"{tested}; {EXACT}; picked = picked if tested else index[:, 0].clone()")
    assert (evaluation.status, evaluation.rule) == WRONG
    assert "ordinary calls" in evaluation.reason
    assert len(evaluation.samples_us) == 5
    control = judged(worker, f"{tested}; {EXACT}; picked = picked if tested else picked.clone()")
    assert control.status is Status.PASSED


def test_a_slow_sampler_draws_less_of_both_rows_and_its_power_says_so(worker: DeviceWorker) -> None:
    evaluation = judged(worker, f"time.sleep(0.001); {EXACT}", "import time", batch=1)
    assert evaluation.status is Status.PASSED
    assert evaluation.sample_draws is not None
    assert 256 < evaluation.sample_draws < CAP
    assert evaluation.sample_power is not None
    assert evaluation.sample_power < 0.5


def test_few_draws_say_that_they_tell_little_and_still_find_what_is_gross(worker: DeviceWorker) -> None:
    evaluation = judged(worker, EXACT, sampling_draws=1_500)
    assert evaluation.status is Status.PASSED
    assert evaluation.sample_power is not None
    assert evaluation.sample_power < 0.5
    found = judged(worker, BODIES["uniform"][0], sampling_draws=1_500)
    assert (found.status, found.rule) == WRONG


def test_destination_passing_and_a_generator_seeded_by_torch_pass(worker: DeviceWorker) -> None:
    assert judged(worker, EXACT, passing=True).status is Status.PASSED
    assert judged(worker, f"{SEEDED}; {OWN}").status is Status.PASSED


@pytest.mark.parametrize(("batch", "mixed"), [(32, "roll(1, 0)"), (2, "flip(0)"), (4, "roll(2, 0)")])
def test_rows_that_are_mixed_up_are_found(worker: DeviceWorker, batch: int, mixed: str) -> None:
    """No filter, so that no mask shows it: every token is legal, its probability is another row's. Ordinary calls are
    over before it begins."""
    free: dict[str, Any] = {"batch": batch, "top_k": 512, "sampling_draws": 4_000}
    late = f"CALLS.append(0); picked = torch.multinomial(probs if len(CALLS) < 40 else probs.{mixed}, 1)[:, 0]"
    evaluation = judged(worker, late, "CALLS = []", **free)
    assert (evaluation.status, evaluation.rule) == WRONG
    assert "filtered row" in evaluation.reason
    assert judged(worker, "picked = torch.multinomial(probs, 1)[:, 0]", **free).status is Status.PASSED


@pytest.mark.parametrize("batch", [2, 32])
def test_one_random_number_for_all_rows_is_found(worker: DeviceWorker, batch: int) -> None:
    """Ordinary calls are over before it begins."""
    state = "def rand(count):\n    CALLS.append(0)\n    return count if len(CALLS) < 40 else {}\nCALLS = []"
    body = SHARED.format("torch.rand(rand(len(probs)), 1).expand(len(probs), 1).contiguous()")
    evaluation = judged(worker, body, state.format(1), batch=batch, sampling_draws=4_000)
    assert (evaluation.status, evaluation.rule) == WRONG
    assert "rows of one call" in evaluation.reason
    assert judged(worker, body, state.format("count"), batch=batch, sampling_draws=4_000).status is Status.PASSED


@pytest.mark.parametrize("batch", [1, 32])
def test_a_seed_of_its_own_that_moves_on_shows_in_the_second_process(worker: DeviceWorker, batch: int) -> None:
    evaluation = judged(worker, OWN, ADVANCING, batch=batch, sampling_draws=1_500)
    assert (evaluation.status, evaluation.rule) == WRONG
    assert "two processes" in evaluation.reason

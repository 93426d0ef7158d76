"""Test the test: a normal workload notices every plainly wrong output; one without teeth is named."""

from typing import Any

import pytest
import torch
from kernels import ADD, GEMM, NORM, definition

from fib_core.device.mutations import Examination, examine, examine_sampler, sampler_survivors, survivors
from fib_core.device.reference import compile_reference, expected_outputs
from fib_core.device.sampling import Rows, needed_draws
from schemas.definition import Definition

ALL = {"zeros", "mean", "input_copy", "previous_output", "one_wrong_row", "one_zero_row"}
CONSTANT = definition(
    "nothing", "elementwise", {"M": None, "N": 32}, {"a": (["M", "N"], "float32")}, {"c": (["M", "N"], "float32")},
    "def run(a):\n    return a * 0\n",
)  # fmt: skip
EXPERTS = definition(
    "experts", "moe", {"T": None, "H": 64}, {"x": (["T", "H"], "bfloat16")}, {"out": (["T", "H"], "bfloat16")},
    "import torch\ndef run(x):\n    return torch.nn.functional.silu(x) * x\n",
)  # fmt: skip
IDENTITY = definition(
    "copy", "elementwise", {"M": None, "N": 32}, {"a": (["M", "N"], "float32")}, {"c": (["M", "N"], "float32")},
    "def run(a):\n    return a.clone()\n",
)  # fmt: skip


def _inputs(target: Definition, seed: int, **axes: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(target.shape_of(name, axes) or (), generator=generator).to(getattr(torch, spec.dtype))
        for name, spec in target.inputs.items()
    }


def _examined(target: Definition, sets: int = 2, seed: int = 1, **axes: int) -> Examination:
    inputs = [_inputs(target, index, **axes) for index in range(sets)]
    expected = [expected_outputs(target, compile_reference(target), values) for values in inputs]
    generator = torch.Generator().manual_seed(seed)
    found = examine(target.policy, target.outputs, expected, inputs[0], generator)
    again = torch.Generator().manual_seed(seed)
    assert survivors(target.policy, target.outputs, expected, inputs[0], again) == found.survivors
    return found


@pytest.mark.parametrize("target", [NORM, EXPERTS, IDENTITY], ids=lambda d: d.name)
def test_a_normal_workload_kills_every_mutation_of_every_output(target: Definition) -> None:
    found = _examined(target, M=40, T=40)
    wanted = {f"{mutation}:{output}" for mutation in ALL for output in target.outputs}
    if target is IDENTITY:
        assert found.survivors == ("input_copy:c",), "an input copy is right here"
        wanted.remove("input_copy:c")
    else:
        assert found.survivors == ()
    assert set(found.killed) == wanted


def test_an_output_that_no_input_resembles_has_no_input_copy() -> None:
    found = _examined(GEMM, M=7)
    assert found.survivors == ()
    assert found.skipped == ("input_copy:C",)


def test_a_constant_reference_is_toothless_for_zeros_and_whatever_equals_them() -> None:
    found = _examined(CONSTANT, M=5)
    assert set(found.survivors) == {f"{name}:c" for name in ALL - {"input_copy"}}
    assert found.killed == ("input_copy:c",)


def test_one_row_has_no_other_row_and_one_input_set_no_previous_output() -> None:
    found = _examined(EXPERTS, sets=1, T=1)
    assert set(found.skipped) == {"one_wrong_row:out", "previous_output:out"}
    assert "one_zero_row:out" in found.killed


def test_equal_input_sets_are_toothless_for_a_replay() -> None:
    inputs = _inputs(ADD, 1, N=50)
    expected = expected_outputs(ADD, compile_reference(ADD), inputs)
    generator = torch.Generator().manual_seed(1)
    assert survivors(ADD.policy, ADD.outputs, [expected, expected], inputs, generator) == ("previous_output:c",)


def test_a_loose_policy_is_found_out() -> None:
    rule = NORM.policy.outputs["out"].model_copy(update={"atol": 10.0})
    loose = NORM.policy.model_copy(update={"outputs": NORM.policy.outputs | {"out": rule}})
    found = _examined(NORM.model_copy(update={"numerics": loose}), M=40)
    assert {"zeros:out", "mean:out", "one_wrong_row:out"} <= set(found.survivors)
    assert not any(name.endswith(":residual_out") for name in found.survivors)


def _rows(batch: int, top_k: int | None, spread: float = 2.0, alike: bool = False) -> Rows:
    noise = torch.randn(1 if alike else batch, 300, generator=torch.Generator().manual_seed(4)) * spread
    probs = torch.softmax(noise.expand(batch, -1), dim=1).double()
    return Rows(probs, None if top_k is None else torch.full((batch,), top_k), None)


def test_a_normal_sampling_workload_kills_every_wrong_distribution() -> None:
    rows = _rows(4, 20)
    found = examine_sampler(rows, 0, needed_draws(rows, 0), 64, torch.Generator().manual_seed(2))
    assert set(found.killed) == {"uniform", "argmax", "unfiltered", "another_row"}


def test_too_few_draws_equal_rows_and_flat_rows_are_toothless() -> None:
    few = sampler_survivors(_rows(4, 20), 0, 16, 8, torch.Generator().manual_seed(2))
    assert "uniform" in few
    generator = torch.Generator().manual_seed(3)
    assert sampler_survivors(_rows(4, 20, alike=True), 0, 20_000, 64, generator) == ("another_row",)
    flat = examine_sampler(_rows(1, None, spread=0.0), 0, 20_000, 64, generator)
    assert flat.survivors == ("uniform",)
    assert set(flat.skipped) == {"unfiltered", "another_row"}


def test_a_greedy_row_cannot_tell_the_shape_of_a_distribution() -> None:
    found = examine_sampler(_rows(1, 1), 0, 5_000, 64, torch.Generator().manual_seed(2))
    assert set(found.survivors) == {"uniform", "argmax"}
    assert found.killed == ("unfiltered",)

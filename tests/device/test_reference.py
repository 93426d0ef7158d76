"""References run in fp64 where they can; where they cannot, the record says why."""

import pytest
import torch
from kernels import ADD, definition

from fib_core.device import reference
from fib_core.device.reference import compile_reference, expect, expected_outputs
from fib_core.errors import ContractError

EXPERTS = definition(
    "experts", "moe", {"T": None, "H": 64},
    {"x": (["T", "H"], "float8_e4m3fn"), "scale": (["T", "H"], "float32")}, {"out": (["T", "H"], "bfloat16")},
    "import torch\ndef run(x, scale):\n    return x.to(scale.dtype) * scale\n",
)  # fmt: skip


def test_widened_inputs_give_fp64_outputs() -> None:
    inputs = {"a": torch.rand(5), "b": torch.rand(5)}
    found = expect(ADD, compile_reference(ADD), inputs)
    assert (found.precision, found.why) == ("float64", "")
    assert torch.equal(found.outputs["c"], inputs["a"].double() + inputs["b"].double())
    assert torch.equal(expected_outputs(ADD, compile_reference(ADD), inputs)["c"], found.outputs["c"])


def test_block_scales_are_widened_and_fp8_values_are_not() -> None:
    inputs = {"x": torch.rand(3, 64).to(torch.float8_e4m3fn), "scale": torch.rand(3, 64)}
    found = expect(EXPERTS, compile_reference(EXPERTS), inputs)
    assert found.precision == "float64"
    assert found.outputs["out"].dtype == torch.float64


def test_a_reference_that_refuses_fp64_says_so_and_runs_as_declared() -> None:
    source = "def run(a, b):\n    assert a.dtype.itemsize == 4, 'fp32 only'\n    return a + b\n"
    narrow = ADD.model_copy(update={"reference": source})
    found = expect(narrow, compile_reference(narrow), {"a": torch.rand(5), "b": torch.rand(5)})
    assert found.precision == "declared"
    assert "AssertionError: fp32 only" in found.why
    assert found.outputs["c"].dtype == torch.float32


def test_indices_and_samples_are_not_widened_since_near_ties_may_fall_otherwise() -> None:
    target = definition(
        "best", "other", {"N": None}, {"a": (["N"], "float32")}, {"i": ([], "int64")},
        "def run(a):\n    return a.argmax()\n",
    )  # fmt: skip
    found = expect(target, compile_reference(target), {"a": torch.rand(5)})
    assert found.precision == "declared"
    assert "exact" in found.why


def test_inputs_too_large_to_widen_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "_WIDE_BYTES_MAX", 79)
    found = expect(ADD, compile_reference(ADD), {"a": torch.rand(5), "b": torch.rand(5)})
    assert found.precision == "declared"
    assert "80 bytes" in found.why


@pytest.mark.parametrize("body", ["a.add_(1); return a + b", "return (a + b) / 0", "return a, b", "return 1 / 0"])
def test_a_broken_reference_is_a_broken_contract(body: str) -> None:
    broken = ADD.model_copy(update={"reference": f"def run(a, b):\n    {body}\n"})
    with pytest.raises(ContractError):
        expect(broken, compile_reference(broken), {"a": torch.rand(5), "b": torch.rand(5)})

"""Test the test: would a workload notice an output that is plainly wrong?

In: a policy, what the reference says about each input set, inputs. Out: the mutations that pass the very rules that
candidates are judged by. A workload that a mutation survives is toothless for it: it supports no promotion. Pure;
deterministic by its generator. Knows no candidates.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fib_core.device.compare import compare
from fib_core.device.regions import torch_dtype
from fib_core.device.sampling import distribution_test, mask_finding
from fib_core.device.support import MASK_SLACK, Rows, support, thresholds
from schemas.definition import TensorSpec
from schemas.numerics import NumericalPolicy


@dataclass(frozen=True)
class Examination:
    """Mutations by fate, each named ``mutation:output``. Skipped: not applicable to this workload."""

    killed: tuple[str, ...]
    survivors: tuple[str, ...]
    skipped: tuple[str, ...]


def survivors(
    policy: NumericalPolicy,
    outputs: Mapping[str, TensorSpec],
    expected_by_set: Sequence[Mapping[str, Any]],
    inputs: Mapping[str, Any],
    generator: torch.Generator,
) -> tuple[str, ...]:
    """Mutations of single outputs that would pass; see :func:`examine`."""
    return examine(policy, outputs, expected_by_set, inputs, generator).survivors


def examine(
    policy: NumericalPolicy,
    outputs: Mapping[str, TensorSpec],
    expected_by_set: Sequence[Mapping[str, Any]],
    inputs: Mapping[str, Any],
    generator: torch.Generator,
) -> Examination:
    """Mutate one output at a time, all others right, in its declared dtype, against the first input set.

    ``expected_by_set``: outputs by name for each input set of one workload; ``inputs`` are those of the first.
    """
    fates: dict[str, list[str]] = {"killed": [], "survivors": [], "skipped": []}
    for name, spec in outputs.items():
        right, rule, dtype = expected_by_set[0][name], policy.outputs[name], torch_dtype(spec.dtype)
        others = [values[name] for values in expected_by_set[1:]]
        for mutation, wrong in _mutations(right, dtype, others, inputs, generator):
            fate = "skipped"
            if wrong is not None:
                passed = compare(_narrow(wrong, dtype), right, rule, spec.dtype).finding is None
                fate = "survivors" if passed else "killed"
            fates[fate].append(f"{mutation}:{name}")
    return Examination(**{fate: tuple(names) for fate, names in fates.items()})


def _mutations(
    right: Any, dtype: torch.dtype, others: Sequence[Any], inputs: Mapping[str, Any], generator: torch.Generator
) -> Iterator[tuple[str, Any]]:
    """Name and wrong output, None where there is no such mutation."""
    yield "zeros", torch.zeros_like(right)
    yield "mean", _mean(right)
    alike = (v for v in inputs.values() if isinstance(v, torch.Tensor) and v.shape == right.shape and v.dtype == dtype)
    yield "input_copy", next(alike, None)
    yield "previous_output", others[0] if others else None
    yield from _wrong_rows(right, generator)


def _mean(right: Any) -> Any:
    wide = right.to(torch.float64)
    finite = wide[torch.isfinite(wide)]
    return torch.full_like(wide, float(finite.mean())) if finite.numel() else None


def _wrong_rows(right: Any, generator: torch.Generator) -> Iterator[tuple[str, Any]]:
    """One secret row (line along the last axis; element of a vector) replaced by its neighbour or by zeros."""
    rows = right.reshape(-1, right.shape[-1] if right.dim() > 1 else 1).clone()
    count = len(rows) if rows.numel() else 0
    chosen = int(torch.randint(max(count, 1), (1,), generator=generator))
    other, blank = rows.clone(), rows.clone()
    if count > 1:
        other[chosen] = rows[(chosen + 1) % count]
    if count:
        blank[chosen] = 0
    yield "one_wrong_row", other.reshape(right.shape) if count > 1 else None
    yield "one_zero_row", blank.reshape(right.shape) if count else None


def _narrow(values: Any, dtype: torch.dtype) -> Any:
    if dtype.is_floating_point and dtype.itemsize == 1:  # the conversion of a large value would not saturate
        limit = torch.finfo(dtype).max
        values = values.to(torch.float64).clamp(-limit, limit)
    return values.to(dtype)


def sampler_survivors(rows: Rows, row: int, draws: int, batch: int, generator: torch.Generator) -> tuple[str, ...]:
    """Mutated distributions that pass; see :func:`examine_sampler`."""
    return examine_sampler(rows, row, draws, batch, generator).survivors


def examine_sampler(rows: Rows, row: int, draws: int, batch: int, generator: torch.Generator) -> Examination:
    """Judge ``draws`` draws, in calls of ``batch``, from mutated distributions of one row as a sampler's are judged."""
    fates: dict[str, list[str]] = {"killed": [], "survivors": [], "skipped": []}
    one, calls = rows.only(row), max(2, -(-draws // batch))
    limits = thresholds(one, MASK_SLACK)
    for mutation, weights in _distributions(rows, row):
        fate = "skipped"
        if weights is not None:
            drawn = torch.multinomial(weights, calls * batch, replacement=True, generator=generator)
            finding = mask_finding(one, limits, drawn.reshape(-1, 1))
            if finding is None:
                finding = distribution_test(one, 0, drawn.reshape(calls, batch), generator).finding
            fate = "survivors" if finding is None else "killed"
        fates[fate].append(mutation)
    return Examination(**{fate: tuple(names) for fate, names in fates.items()})


def _distributions(rows: Rows, row: int) -> Iterator[tuple[str, Any]]:
    """Name and wrong distribution [vocab], None where there is no such mutation."""
    batch, probs = rows.probs.shape[0], rows.probs[row]
    right = _dense(rows, row)
    yield "uniform", (right > 0).double()
    yield "argmax", torch.zeros_like(probs).index_fill(0, probs.argmax(), 1.0)
    yield "unfiltered", probs if rows.top_k is not None or rows.top_p is not None else None
    yield "another_row", _dense(rows, (row + 1) % batch) if batch > 1 else None


def _dense(rows: Rows, row: int) -> Any:
    found = support(rows, row)
    return torch.zeros_like(rows.probs[row]).index_put((found.ids,), found.weights)

"""Inputs from recipes: secret random contents, rebuilt structures, captured tensors, scalars.

In: a definition, a workload, a secret seed, the number of the input set. Out: values in call order. Deterministic, so
that whoever holds the seed can build the same inputs again. Raises :class:`UnsupportedInput` or
:class:`ContractError`, which are never a verdict on a kernel.
"""

import hashlib
import math
from itertools import count as count_from
from pathlib import Path, PurePosixPath
from typing import Any

import torch

from fib_core.device.regions import torch_dtype
from fib_core.errors import ContractError, UnsupportedInput
from schemas.definition import Definition
from schemas.workload import RandomInput, SafetensorsInput, ScalarInput, StructuredInput, Workload

_ROPE_BASE = 1e4
_NORMAL = (None, "normal")
_THIRDS = 3
_SPREAD_MIN, _SPREAD_MAX = 1 << 12, 1 << 18  # elements beyond a tensor's own from which its window may start


def secret_seed(seed: str, *parts: object) -> int:
    """63 bits that nobody without ``seed`` can predict."""
    text = "\x1f".join([seed, *map(str, parts)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def build_inputs(
    definition: Definition, workload: Workload, seed: str, set_index: int, blob_root: str | None
) -> dict[str, Any]:
    """Tensors and scalars of one input set by input name, in the definition's order."""
    return InputSource(definition, workload, seed, blob_root).values(set_index)


class InputSource:
    """Fresh contents, set after set. What the definition calls static, and what was captured, is the same in all sets.

    Random tensors of later sets are mixed from two windows into one secret pool, at secret places and in secret shares:
    no element comes again, at the price of two copies. (One window alone shows the elements of earlier ones once more,
    shifted: who keeps results element by element need not compute them.) Rows of normal contents have secret scales of
    their own: the mean square of a long row is else known before it is read. Rebuilt page tables are drawn anew.
    """

    def __init__(
        self, definition: Definition, workload: Workload, seed: str, blob_root: str | None, device: str = "cpu"
    ) -> None:
        missing = [name for name in definition.inputs if name not in workload.inputs]
        if missing:
            raise ContractError(f"{definition.name}: the workload has no recipe for {', '.join(missing)}")
        self._definition, self._workload, self._seed, self._blob_root = definition, workload, seed, blob_root
        self._device = device
        self._pools: dict[str, Any] = {}
        self._starts: dict[str, list[int]] = {}
        self._fixed: dict[str, Any] = {}

    def values(self, index: int) -> dict[str, Any]:
        """Tensors and scalars of one set by input name, in the definition's order."""
        return {name: self._value(name, index) for name in self._definition.inputs}

    def forget(self) -> None:
        """Drop what was kept; the same values come again from the seed."""
        self._pools.clear()
        self._fixed.clear()

    def _value(self, name: str, index: int) -> Any:
        recipe = self._workload.inputs[name]
        varies = isinstance(recipe, RandomInput) or (isinstance(recipe, StructuredInput) and "seed" in recipe.params)
        if varies and name not in self._definition.static:
            return self._built(name, index)
        if name not in self._fixed:
            self._fixed[name] = self._built(name, 0)
        return self._fixed[name]

    def _built(self, name: str, index: int) -> Any:
        definition, recipe = self._definition, self._workload.inputs[name]
        dtype, shape = definition.inputs[name].dtype, definition.shape_of(name, self._workload.axes)
        if isinstance(recipe, ScalarInput):
            return recipe.value if shape is None else self._full(shape, recipe.value, dtype)
        if shape is None:
            raise UnsupportedInput(f"{definition.name}: scalar input {name} needs a value, not a {recipe.type} recipe")
        if isinstance(recipe, RandomInput):
            return self._random(name, recipe.distribution, shape, dtype, index)
        if isinstance(recipe, StructuredInput):
            value = _structured(self._reseeded(recipe, name, index))
        else:
            value = _captured(recipe, self._blob_root)
        if tuple(value.shape) != shape:
            shapes = f"{list(value.shape)}, axes say {list(shape)}"
            raise ContractError(f"{definition.name}: input {name} has shape {shapes}")
        return value.to(torch_dtype(dtype)).contiguous().to(self._device)

    def _full(self, shape: tuple[int, ...], value: float, dtype: str) -> Any:
        return torch.full(shape, value, dtype=torch_dtype(dtype), device=self._device)

    def _random(self, name: str, distribution: str | None, shape: tuple[int, ...], dtype: str, index: int) -> Any:
        label, count = f"{self._definition.name}.{name}", math.prod(shape)
        _check_random(label, distribution, dtype)
        if distribution == "cos_sin_cache":
            return _cos_sin_cache(shape).to(torch_dtype(dtype)).to(self._device)
        spread = min(max(count, _SPREAD_MIN), _SPREAD_MAX)
        if name not in self._pools:
            generator = torch.Generator(self._device).manual_seed(self._secret(name))
            self._pools[name] = torch.randn(count + spread, generator=generator, device=self._device)
        noise = self._mixed(name, index, count, spread).reshape(shape)
        return shaped(self._uneven(noise, name, index) if distribution in _NORMAL else noise, distribution, dtype)

    def _mixed(self, name: str, index: int, count: int, spread: int) -> Any:
        """Two windows in shares whose squares add up to one, so that the sum is standard normal again."""
        pool, start = self._pools[name], self._start(name, index, spread)
        if not index:
            return pool[:count]
        other = (start + 1 + self._secret(name, index, "other") % (spread - 1)) % spread
        angle = math.pi * (0.125 + 0.25 * self._secret(name, index, "share") / 2**63)
        return (pool[start : start + count] * math.cos(angle)).add_(pool[other : other + count], alpha=math.sin(angle))

    def _uneven(self, noise: Any, name: str, index: int) -> Any:
        """Rows (all but the last axis) times secret numbers between 0.5 and 1.5.

        The first row's is in another third of that range in each of three sets, so that a single row is uneven too.
        """
        group, place = divmod(index, _THIRDS)
        turn = self._secret(name, group, "turn")
        third = (turn + (1 + turn // _THIRDS % 2) * place) % _THIRDS
        generator = torch.Generator(self._device).manual_seed(self._secret(name, index, "rows"))
        scales = torch.rand((*noise.shape[:-1], 1), generator=generator, device=self._device)
        scales.view(-1)[:1] = (scales.view(-1)[:1] + third) / _THIRDS
        scales += 0.5
        return noise.mul_(scales) if index else noise * scales

    def _start(self, name: str, index: int, spread: int) -> int:
        """Where in the pool a set begins: secret, and no two sets alike. Equal contents would serve who remembers."""
        starts = self._starts.setdefault(name, [0])
        while len(starts) <= index:
            taken = set(starts) if len(starts) < spread else set()
            tries = (self._secret(name, len(starts), *([again] if again else [])) % spread for again in count_from(0))
            starts.append(next(start for start in tries if start not in taken))
        return starts[index]

    def _reseeded(self, recipe: StructuredInput, name: str, index: int) -> StructuredInput:
        if not index or "seed" not in recipe.params:
            return recipe
        return recipe.model_copy(update={"params": recipe.params | {"seed": self._secret(name, index)}})

    def _secret(self, *parts: object) -> int:
        return secret_seed(self._seed, self._workload.digest, *parts)


def _structured(recipe: StructuredInput) -> Any:
    from fib_core.workloads.structure import GENERATORS

    if recipe.generator not in GENERATORS:
        raise UnsupportedInput(f"unknown structural generator {recipe.generator!r}")
    try:
        return torch.from_numpy(GENERATORS[recipe.generator](**recipe.params).copy())
    except (TypeError, ValueError) as error:
        raise ContractError(f"structural generator {recipe.generator}: {error}") from error


def _captured(recipe: SafetensorsInput, blob_root: str | None) -> Any:
    from safetensors import SafetensorError, safe_open

    inside = PurePosixPath(recipe.path)
    if blob_root is None or inside.is_absolute() or ".." in inside.parts:
        raise UnsupportedInput(f"blob {recipe.path}: no dataset root was given, or the path leaves it")
    path = Path(blob_root) / inside
    try:
        with safe_open(path, framework="pt") as blob:
            return blob.get_tensor(recipe.tensor_key)
    except FileNotFoundError as error:
        raise UnsupportedInput(f"blob {path} is missing; fetch the dataset's blobs") from error
    except SafetensorError as error:
        raise ContractError(f"not readable as safetensors (key {recipe.tensor_key}): {error}", str(path)) from error


def shaped(noise: Any, distribution: str | None, dtype: str) -> Any:
    """Standard normal noise as values of a distribution in a dtype; never the memory of ``noise`` itself."""
    values = _narrow(_SHAPERS[distribution](noise), dtype)
    return values.clone() if values.data_ptr() == noise.data_ptr() else values


def _check_random(label: str, distribution: str | None, dtype: str) -> None:
    if not dtype.startswith(("float", "bfloat")):
        raise UnsupportedInput(f"{label}: random {dtype} contents mean nothing; give a blob or a structured recipe")
    if distribution != "cos_sin_cache" and distribution not in _SHAPERS:
        known = ", ".join(map(str, _SHAPERS))
        raise UnsupportedInput(f"{label}: unknown distribution {distribution!r}; known: {known}")


def _narrow(values: Any, dtype: str) -> Any:
    target = torch_dtype(dtype)
    if dtype.startswith("float8"):
        limit = torch.finfo(target).max
        values = values.clamp(-limit, limit)
    return values.to(target)


def _uniform(noise: Any) -> Any:
    return torch.special.ndtr(noise)  # the normal's own distribution function: uniform, from the same secret stream


_SHAPERS: dict[str | None, Any] = {
    None: lambda noise: noise,
    "normal": lambda noise: noise,
    "probs": lambda noise: torch.softmax(noise * 2, dim=-1),
    # Activations of order 5 drive gates into the curved part of silu: at 1e-2 a linear stand-in would pass.
    "activation_scale": lambda noise: (0.5 + _uniform(noise)) * 5.0,
    "block_scale": lambda noise: (0.5 + _uniform(noise)) * 1e-2,
    "weight": lambda noise: noise / max(noise.shape[-1], 1) ** 0.5,
    "norm_weight": lambda noise: 1 + 0.1 * noise,
    "routing_logits": lambda noise: noise * 2,
    "routing_bias": lambda noise: noise * 0.02,
}


def _cos_sin_cache(shape: tuple[int, ...]) -> Any:
    """Rows of positions, columns [cos | sin] of half the rotary dimension each (RoFormer's angles, base 1e4)."""
    if len(shape) != 2 or shape[1] % 2:
        raise UnsupportedInput(f"cos_sin_cache needs [positions, even rotary dim], not {list(shape)}")
    half = shape[1] // 2
    frequencies = _ROPE_BASE ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(shape[0], dtype=torch.float64)[:, None] * frequencies
    return torch.cat([angles.cos(), angles.sin()], dim=1)

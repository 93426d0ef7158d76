"""Structural inputs: integer arrays that random numbers cannot stand for, rebuilt from small recipes.

In: a Definition, bound axes, the structure facts of a call. Out: one InputRecipe per input, by the public input names
of the eight op types. The arrays themselves come from ``generators``. Knows nothing of torch, files or timing.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from fib_core.errors import UnsupportedInput
from fib_core.workloads.generators import GENERATORS, Array
from fib_core.workloads.points import Point, small_valid_set, stress_points
from fib_core.workloads.ragged import Structure, is_paged, page_counts, page_size_of
from schemas.canonical import digest_of
from schemas.definition import Definition
from schemas.workload import InputRecipe, RandomInput, ScalarInput, StructuredInput

__all__ = ["GENERATORS", "Point", "generate", "recipes_for", "small_valid_set", "stress_points"]

Scalars = Mapping[str, bool | int | float]


def generate(recipe: StructuredInput) -> Array:
    """Rebuild one structural input; raises UnsupportedInput for an unknown generator or wrong parameters."""
    maker = GENERATORS.get(recipe.generator)
    if maker is None:
        raise UnsupportedInput(f"unknown generator {recipe.generator!r}; known: {sorted(GENERATORS)}")
    try:
        return maker(**recipe.params)
    except (TypeError, ValueError) as error:
        raise UnsupportedInput(f"generator {recipe.generator!r} refuses {sorted(recipe.params)}: {error}") from error


def recipes_for(
    definition: Definition, axes: Mapping[str, int], structure: Structure, scalars: Scalars
) -> dict[str, InputRecipe]:
    """One recipe per input, in declaration order; raises UnsupportedInput naming every input it cannot invent."""
    facts = _Facts(definition, axes, structure, scalars)
    recipes = {name: facts.recipe(name) for name in definition.inputs}
    missing = [name for name, recipe in recipes.items() if recipe is None]
    if missing:
        raise UnsupportedInput(
            f"{definition.name}: cannot invent {', '.join(missing)}; record them in the call log (structure, scalars) "
            "or give a workload whose row carries them"
        )
    return {name: recipe for name, recipe in recipes.items() if recipe is not None}


_DEFAULT_SCALARS = {"eps": 1e-6, "local_expert_offset": 0, "routed_scaling_factor": 2.5}
_DISTRIBUTIONS = {
    "probs": "probs",
    "cos_sin_cache": "cos_sin_cache",
    "routing_logits": "routing_logits",
    "routing_bias": "routing_bias",
    "hidden_states_scale": "activation_scale",
}
# Prefixes are shared in practice; every third batch shares one page, so no kernel may assume disjoint pages.
_SHARE_EVERY = 3
_DEFAULT_TOP_P = (0.9, 0.8, 0.95, 0.6, 1.0)


class _Facts:
    """The facts of one call, asked input by input."""

    def __init__(
        self, definition: Definition, axes: Mapping[str, int], structure: Structure, scalars: Scalars
    ) -> None:
        self.definition, self.structure, self.scalars = definition, structure, scalars
        self.sizes = definition.const_axes | dict(axes)
        self.kv_lens = structure.get("kv_lens", None if is_paged(definition) else structure.get("qo_lens"))
        self.seed = int(digest_of([dict(axes), {k: list(v) for k, v in structure.items()}])[7:15], 16)

    def recipe(self, name: str) -> InputRecipe | None:
        """The recipe of one input; None if it cannot be invented."""
        spec = self.definition.inputs[name]
        if spec.shape is None:
            return self._scalar(name)
        maker = _STRUCTURAL.get(name)
        if maker is not None:
            return maker(self, name)
        if spec.dtype.startswith(("int", "bool")):
            return None if name not in self.structure else _structured("values", values=list(self.structure[name]))
        return _random(self._distribution(name, spec.dtype))

    def _scalar(self, name: str) -> InputRecipe | None:
        value = self.scalars.get(name, _DEFAULT_SCALARS.get(name))
        if value is None and name == "sm_scale":
            value = 1.0 / math.sqrt(self.sizes.get("head_dim") or 128 + self.sizes.get("head_dim_kpe", 0))
        return None if value is None else ScalarInput(type="scalar", value=value)

    def _distribution(self, name: str, dtype: str) -> str | None:
        if name in _DISTRIBUTIONS:
            return _DISTRIBUTIONS[name]
        if name.endswith("_scale") or "_scales" in name:
            return "block_scale"
        if name == "weight" and self.definition.op_type == "rmsnorm":
            return "norm_weight"
        is_weight = name == "weight" or name.endswith("_weights") or (self.definition.op_type, name) == ("gemm", "B")
        return "weight" if is_weight and not dtype.startswith("float8") else None

    def kv_indptr(self, name: str) -> InputRecipe | None:
        if self.kv_lens is None:
            return None
        counts = page_counts(self.kv_lens, page_size_of(self.definition)) if is_paged(self.definition) else self.kv_lens
        return _structured("indptr", lengths=list(counts))

    def qo_indptr(self, name: str) -> InputRecipe | None:
        lengths = self.structure.get("qo_lens")
        return None if lengths is None else _structured("indptr", lengths=list(lengths))

    def kv_indices(self, name: str) -> InputRecipe | None:
        if self.kv_lens is None:
            return None
        counts = list(page_counts(self.kv_lens, page_size_of(self.definition)))
        pool = self.sizes.get("num_pages", sum(counts))
        shared = 1 if len(counts) > 1 and self.seed % _SHARE_EVERY == 0 else 0
        return _structured("page_indices", num_pages=pool, counts=counts, seed=self.seed, shared=shared)

    def kv_last_page_len(self, name: str) -> InputRecipe | None:
        if self.kv_lens is None:
            return None
        first = (self.definition.inputs[name].shape or ("",))[0]
        pad = {"pad_to": self.sizes[first]} if self.sizes.get(first, 0) > len(self.kv_lens) else {}
        page_size = page_size_of(self.definition)
        return _structured("last_page_len", lengths=list(self.kv_lens), page_size=page_size, **pad)

    def positions(self, name: str) -> InputRecipe:
        count = self._count(name)
        seen = self.structure.get(name) or self.structure.get("positions")
        if not seen:
            return _structured("wrapped_positions", count=count, limit=self.sizes.get("max_seq_len", count))
        starts, lengths = _runs(seen)
        return _structured("positions", starts=starts, lengths=lengths)

    def top_k(self, name: str) -> InputRecipe:
        vocab = self.sizes.get("vocab_size", 50)
        default = [min(k, vocab) for k in (50, 20, 1, 100, 40)]
        return self._per_row(name, default)

    def top_p(self, name: str) -> InputRecipe:
        return self._per_row(name, list(_DEFAULT_TOP_P))

    def _per_row(self, name: str, default: list[Any]) -> InputRecipe:
        if name in self.structure:
            return _structured("values", values=list(self.structure[name]))
        if name in self.scalars:
            return _structured("constant", value=self.scalars[name], count=self._count(name))
        return _structured("cycle", values=default, count=self._count(name))

    def _count(self, name: str) -> int:
        shape = self.definition.inputs[name].shape or ()
        return self.sizes[shape[0]] if shape else 1


_STRUCTURAL: dict[str, Callable[[_Facts, str], InputRecipe | None]] = {
    "kv_indptr": _Facts.kv_indptr,
    "qo_indptr": _Facts.qo_indptr,
    "kv_indices": _Facts.kv_indices,
    "kv_last_page_len": _Facts.kv_last_page_len,
    "positions": _Facts.positions,
    "pos_ids": _Facts.positions,
    "top_k": _Facts.top_k,
    "top_p": _Facts.top_p,
}


def _structured(generator: str, **params: Any) -> StructuredInput:
    return StructuredInput(type="structured", generator=generator, params=params)


def _random(distribution: str | None) -> RandomInput:
    return RandomInput(type="random", distribution=distribution) if distribution else RandomInput(type="random")


def _runs(seen: Sequence[int]) -> tuple[list[int], list[int]]:
    starts, lengths = [seen[0]], [1]
    for before, here in pairwise(seen):
        if here == before + 1:
            lengths[-1] += 1
        else:
            starts.append(here)
            lengths.append(1)
    return starts, lengths

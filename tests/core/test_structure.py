"""Structural inputs: what recipes rebuild has the declared shape, and means what the lengths said."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.errors import UnsupportedInput
from fib_core.workloads.generators import indptr, last_page_len, page_indices, positions
from fib_core.workloads.ragged import contradictions, implied_axes, page_counts
from fib_core.workloads.structure import generate, recipes_for, small_valid_set, stress_points
from schemas.definition import Definition, TensorSpec
from schemas.workload import RandomInput, ScalarInput, StructuredInput
from tests.core.world import gemm, paged, prefill, rope, sampling

KNOWN = (gemm(), paged(1), paged(4), prefill(), rope(), sampling())
lengths = st.lists(st.integers(0, 40), min_size=1, max_size=6)


def arrays(definition: Definition, axes, structure, scalars):
    recipes = recipes_for(definition, axes, structure, scalars)
    return {name: generate(item) for name, item in recipes.items() if isinstance(item, StructuredInput)}


@pytest.mark.parametrize("definition", KNOWN, ids=lambda item: item.name)
def test_every_invented_array_has_its_declared_shape(definition: Definition) -> None:
    points = [*small_valid_set(definition), *stress_points(definition)]
    assert points
    for axes, structure, scalars in points:
        for name, array in arrays(definition, axes, structure, scalars).items():
            assert array.shape == definition.shape_of(name, axes)


@pytest.mark.parametrize("definition", KNOWN, ids=lambda item: item.name)
def test_every_invented_point_binds_all_var_axes_and_contradicts_nothing(definition: Definition) -> None:
    for axes, structure, _ in [*small_valid_set(definition), *stress_points(definition)]:
        assert set(axes) == set(definition.var_axes)
        assert contradictions(definition, axes, structure) == []


def test_points_obey_constraints_over_sizes() -> None:
    odd = gemm(constraints=("M % 16 == 0", "M >= 32"))
    assert {point.axes["M"] % 16 for point in small_valid_set(odd)} == {0}
    assert small_valid_set(gemm(constraints=("M < 0",))) == []


def test_stress_attention_has_an_empty_row_and_no_causal_query_without_keys() -> None:
    axes, structure, _ = stress_points(prefill())[0]
    assert 0 in structure["kv_lens"]
    assert all(q <= k for q, k in zip(structure["qo_lens"], structure["kv_lens"], strict=True))
    assert axes["total_q"] == sum(structure["qo_lens"])


def test_stress_sampling_covers_the_greedy_limit_and_no_truncation() -> None:
    drawn = [arrays(sampling(), *point) for point in stress_points(sampling())]
    assert set(drawn[0]["top_k"]) == {1}
    assert set(drawn[1]["top_k"]) == {100}
    assert set(drawn[1]["top_p"]) == {1.0}


@given(lengths, st.integers(1, 5), st.integers(0, 5), st.integers(0, 2**31), st.integers(0, 2))
def test_pages_are_legal_and_never_repeat_within_a_sequence(lens, page_size, spare, seed, shared) -> None:
    counts = page_counts(lens, page_size)
    pool = sum(counts) + spare
    pages = page_indices(pool, counts, seed, shared)
    assert len(pages) == sum(counts)
    assert all(0 <= page < pool for page in pages)
    offsets = indptr(counts)
    for start, end in pairwise(offsets):
        assert len(set(pages[start:end])) == end - start


@given(lengths, st.integers(1, 5), st.integers(0, 2**31))
def test_without_sharing_no_page_serves_two_sequences(lens, page_size, seed) -> None:
    pages = page_indices(sum(page_counts(lens, page_size)), page_counts(lens, page_size), seed)
    assert len(set(pages)) == len(pages)


def test_a_shared_prefix_is_the_same_page_in_every_sequence() -> None:
    pages = page_indices(20, [3, 4, 1], seed=5, shared=1)
    assert pages[0] == pages[3] == pages[7]
    assert len(set(pages)) == 6


def test_a_pool_smaller_than_the_sum_is_shared_and_smaller_than_one_sequence_is_refused() -> None:
    assert max(page_indices(4, [4, 4], seed=1)) == 3
    with pytest.raises(UnsupportedInput, match="needs 5 pages, the pool has 4"):
        page_indices(4, [5], seed=1)


@given(lengths, st.integers(1, 5))
def test_pages_and_last_page_hold_exactly_the_tokens(lens, page_size) -> None:
    last = last_page_len(lens, page_size)
    counts = np.asarray(page_counts(lens, page_size))
    assert list(np.where(counts > 0, (counts - 1) * page_size + last, 0)) == lens
    assert list(last_page_len(lens, page_size, pad_to=len(lens) + 1))[-1] == 0


@given(st.lists(st.integers(0, 63), min_size=1, max_size=50))
def test_positions_come_back_as_they_were_recorded(seen) -> None:
    axes = {"num_tokens": len(seen), "max_seq_len": 64}
    assert list(arrays(rope(), axes, {"positions": tuple(seen)}, {})["positions"]) == seen


def test_positions_that_nobody_recorded_stay_inside_the_cache() -> None:
    made = arrays(rope(), {"num_tokens": 150, "max_seq_len": 64}, {}, {})["positions"]
    assert len(made) == 150
    assert made.max() == 63
    assert list(positions([3], [2])) == [3, 4]


def test_equal_calls_give_equal_recipes_and_other_lengths_other_pages() -> None:
    def pages(lens):
        axes = implied_axes(paged(1), {"kv_lens": lens}) | {"num_pages": 64}
        return recipes_for(paged(1), axes, {"kv_lens": lens}, {})

    assert pages((3, 4)) == pages((3, 4))
    assert pages((3, 4))["kv_indices"] != pages((4, 3))["kv_indices"]


def test_float_inputs_name_their_distribution_and_scalars_their_value() -> None:
    assert recipes_for(gemm(), {"M": 2}, {}, {})["B"] == RandomInput(type="random", distribution="weight")
    assert recipes_for(gemm(), {"M": 2}, {}, {})["A"] == RandomInput(type="random")
    axes, structure, _ = small_valid_set(paged())[0]
    assert recipes_for(paged(), axes, structure, {})["sm_scale"] == ScalarInput(type="scalar", value=1 / 8**0.5)
    assert recipes_for(paged(), axes, structure, {"sm_scale": 0.5})["sm_scale"] == ScalarInput(type="scalar", value=0.5)


def test_what_cannot_be_invented_is_named() -> None:
    strange = gemm().model_copy(
        update={"inputs": {**gemm().inputs, "expert_map": TensorSpec(shape=("M",), dtype="int32")}}
    )
    with pytest.raises(UnsupportedInput, match="expert_map"):
        recipes_for(strange, {"M": 4}, {}, {})
    with pytest.raises(UnsupportedInput, match="kv_indptr, kv_indices, kv_last_page_len"):
        recipes_for(paged(), {"batch_size": 2}, {}, {})


def test_an_unknown_generator_and_wrong_parameters_are_refused_in_words() -> None:
    with pytest.raises(UnsupportedInput, match="unknown generator 'magic'"):
        generate(StructuredInput(type="structured", generator="magic", params={}))
    with pytest.raises(UnsupportedInput, match="refuses"):
        generate(StructuredInput(type="structured", generator="indptr", params={"sizes": [1]}))


def test_contradictions_are_told_in_one_sentence_each() -> None:
    axes = {"batch_size": 2, "num_pages": 3, "len_indptr": 3, "num_kv_indices": 9}
    found = contradictions(paged(), axes, {"kv_lens": (4, 17)})
    assert "axis num_kv_indices is 9, but the structure implies 6" in found
    assert "num_pages is 3, but one sequence needs 5 pages" in found
    assert contradictions(paged(), axes, {"kv_lens": (-1, 3)}) == ["kv_lens holds the negative value -1"]

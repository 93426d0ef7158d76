"""Power-of-two classes: one bucket function, the same everywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.workloads.axisclass import are_neighbours, axis_class, class_key, class_step


@pytest.mark.parametrize(("size", "expected"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (9, 16)])
def test_class_eight_is_five_to_eight(size: int, expected: int) -> None:
    assert axis_class(size) == expected


@given(st.integers(0, 2**40))
def test_a_class_is_its_own_largest_member(size: int) -> None:
    assert axis_class(axis_class(size)) == axis_class(size) >= size
    assert size <= 1 or axis_class(size) < 2 * size


@given(st.integers(0, 2**30), st.integers(0, 2**30))
def test_steps_order_classes_as_sizes_do(one: int, other: int) -> None:
    assert (class_step(one) == class_step(other)) == (axis_class(one) == axis_class(other))
    assert (class_step(one) < class_step(other)) == (axis_class(one) < axis_class(other))


def test_keys_do_not_depend_on_the_order_of_axes() -> None:
    assert class_key({"b": 3, "a": 9}) == class_key({"a": 9, "b": 3}) == "a=16,b=4"
    assert class_key({}) == "-"


def test_neighbours_differ_by_at_most_one_step_per_axis() -> None:
    assert are_neighbours({"M": 8}, {"M": 16})
    assert are_neighbours({"M": 1}, {"M": 0})
    assert not are_neighbours({"M": 8}, {"M": 17})
    assert not are_neighbours({"M": 8}, {"N": 8})

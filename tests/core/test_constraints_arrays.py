"""Constraints over captured arrays and shapes: what is certain is said, the rest is left open, nothing is executed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.workloads.constraints import Unknown, evaluate, holds, names_in, violations

NAMES = {"a": 6, "b": 4, "p": np.array([0, 2, 5], dtype="int32")}
SHAPES = {"w": (3, 12, 7)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a == b + 2", True),
        ("a < b", False),
        ("0 < b < a <= 6", True),
        ("a * b // 5 % 3 - 1", 0),
        ("p[-1].item()", 5),
        ("p[1]", 2),
        ("w.shape[1] == 2 * a", True),
        ("w.shape[-1]", 7),
        ("not (a == 6 and b == 5)", True),
        ("a == 1 or b == 4", True),
    ],
)
def test_the_small_language_means_what_python_means(text: str, value: int) -> None:
    assert evaluate(text, NAMES, SHAPES) == value


@pytest.mark.parametrize(
    "text",
    [
        "c == 1", "p == 1", "p[9]", "a[0]", "a ** b", "1 / 2", "a % 0", "w.shape[9]", "w.dtype", "a.item(1)", "f(a)",
        "__import__('os').system('true')", "(lambda: 1)()", "[x for x in p]", "a if b else 1", "'a' == 'a'", "9" * 4000,
        "a * " * 4000 + "a", "(" * 500 + "a" + ")" * 500, "a in p", "a is b", "p[0:1]", "p[True].x",
    ],
)  # fmt: skip
def test_everything_else_is_unknown_and_violates_nothing(text: str) -> None:
    with pytest.raises(Unknown):
        evaluate(text, NAMES, SHAPES)
    assert violations((text,), NAMES, SHAPES) == []


def test_a_violation_shows_the_numbers() -> None:
    said = violations(("a == p[-1].item()", "a == 6", "a == unknown"), NAMES, SHAPES)
    assert said == ["constraint `a == p[-1].item()` does not hold: a = 6, p = [.. 5]"]


INTS = st.integers(-50, 50)


@given(INTS, INTS, st.sampled_from(["==", "<=", "<", ">=", ">", "!="]), st.sampled_from(["+", "-", "*"]))
def test_comparisons_of_sums_agree_with_python(x: int, y: int, compare: str, op: str) -> None:
    text = f"x {op} y {compare} y {op} 3"
    assert evaluate(text, {"x": x, "y": y}, {}) == eval(text, {"x": x, "y": y})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("p[1] in (2, 3)", True), ("w.shape[0] not in {a, b}", True), ("a / b == 1.5", True),
        ("a == 6 or unknown", True), ("a == 1 and unknown", False),
    ],
)  # fmt: skip
def test_what_one_reader_of_constraints_understands_all_do(text: str, value: bool) -> None:
    assert evaluate(text, NAMES, SHAPES) is value


def test_a_division_by_zero_does_not_hold_for_sizes_and_says_nothing_about_a_row() -> None:
    assert holds("a // 0 == 1", {"a": 1}) is False
    assert violations(("a // 0 == 1",), {"a": 1}, {}) == []
    assert holds("a // b == 1", {"a": 1}) is None


def test_the_names_of_an_expression_come_in_order_and_once() -> None:
    assert names_in("b < a + b < w.shape[0]") == ["b", "a", "w"]

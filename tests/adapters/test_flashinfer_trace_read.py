"""Reading liberally, quarantining precisely, never falling over."""

import json
from pathlib import Path
from typing import Any

import pytest

from fib_core.adapters.flashinfer_trace import read_dataset
from tests.adapters.flashinfer_trace_samples import (
    balanced,
    evaluation,
    gemm,
    only_reason,
    put,
    reasons,
    row,
    small,
    solution,
)


def test_a_row_is_bound_to_its_definitions_digest(tmp_path: Path) -> None:
    dataset = read_dataset(small(tmp_path))
    (found,) = dataset.workloads
    assert found.workload.definition_digest == dataset.definitions["gemm_n8_k4"].digest
    assert (found.file, found.line) == ("workloads/gemm/gemm_n8_k4.jsonl", 1)
    assert found.workload.axes == {"M": 3}
    assert not dataset.quarantined


def test_key_order_spacing_and_layout_do_not_change_what_is_read(tmp_path: Path) -> None:
    plain = read_dataset(small(tmp_path / "a")).workloads[0].workload
    put(tmp_path / "b", "definitions/deep/er/x.json", json.dumps(dict(reversed(gemm().items())), indent=7))
    workload = '{"uuid":"u-1","inputs":{"B":{"type":"random"},"A":{"type":"random"}}, "axes": {"M": 3}}'
    text = f'  {{ "evaluation" : {{}} , "workload":{workload} , "solution":"", "definition":"gemm_n8_k4"}}  \r\n\r\n'
    put(tmp_path / "b", "traces/somewhere/else.jsonl", b"\xef\xbb\xbf" + text.encode())
    (other,) = read_dataset(tmp_path / "b").workloads
    assert other.workload.digest == plain.digest


def test_a_missing_uuid_and_missing_recipes_are_accepted(tmp_path: Path) -> None:
    bare = row()
    del bare["workload"]["uuid"], bare["workload"]["inputs"]["B"]
    small(tmp_path)
    put(tmp_path, "workloads/gemm/gemm_n8_k4.jsonl", bare)
    (found,) = read_dataset(tmp_path).workloads
    assert found.workload.uuid is None
    assert found.workload.inputs["B"].type == "random"


def test_a_repeated_const_axis_is_accepted_when_equal_and_quarantined_when_not(tmp_path: Path) -> None:
    small(tmp_path)
    put(tmp_path, "workloads/a.jsonl", row(axes={"M": 3, "N": 8}), row(axes={"M": 3, "N": 9}))
    dataset = read_dataset(tmp_path)
    assert [item.workload.axes for item in dataset.workloads] == [{"M": 3}, {"M": 3}]
    assert only_reason(dataset) == "axes.N: 9, but the definition fixes 8"


@pytest.mark.parametrize("nan", ['"NaN"', "NaN", '"Infinity"', "Infinity"])
def test_nan_and_infinity_are_read_as_strings_or_tokens(tmp_path: Path, nan: str) -> None:
    bad = evaluation(status="INCORRECT_NUMERICAL", performance=None)
    text = json.dumps(row() | {"solution": "s", "evaluation": bad}).replace("0.001", nan)
    small(tmp_path)
    put(tmp_path, "traces/a/b.jsonl", text)
    dataset = read_dataset(tmp_path)
    assert not dataset.quarantined
    assert dataset.traces[0].trace.evaluation["correctness"]["max_relative_error"] == nan.strip('"')  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n "name": "x",\n "tags": ["a",\n ]\n}', 4, "trailing comma before ']'"),
        ('{\n "name": "x", // no\n}', 2, "comments are not allowed"),
        ("{'name': 1}", 1, "strings need double quotes"),
        ('{\n "name": "x"', 2, "the text ends in the middle of a value"),
        ('{"name": "x" "y": 1}', 1, "expecting ',' delimiter"),
        ('{"name": "x", "name": "y"}', 0, "key 'name' appears twice"),
        ('{"a": ' + "[" * 400 + "]" * 400 + "}", 0, "nested deeper than"),
        ("[" * 100_000, 0, "nested deeper than"),
        ('{"a": 123456789012345678901234567890}', 0, "beyond 2^53"),
        ('{"a": ' + "9" * 5000 + "}", 0, "beyond 2^53"),
        ('{"a": 1e999}', 0, "too large for a double"),
        ('{"a": "\\ud800"}', 0, "half of a surrogate pair"),
        ("", 1, "not JSON"),
        ("[1]", 0, "expected an object, found a list"),
        ("null", 0, "expected an object, found null"),
        ("version https://git-lfs.github.com/spec/v1\noid", 0, "Git LFS pointer"),
    ],
)
def test_a_broken_definition_file_says_where_and_why(tmp_path: Path, text: str, line: int, words: str) -> None:
    put(small(tmp_path), "definitions/bad.json", text)
    dataset = read_dataset(tmp_path)
    (problem,) = dataset.quarantined
    assert (problem.file, problem.line, problem.kind) == ("definitions/bad.json", line, "definition")
    assert words in problem.reason
    assert len(dataset.workloads) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"op_type": None}, "op_type: expected text, found null"),
        ({"axes": {"M": {"type": "expr"}}}, "axes.M.type: 'expr' is neither const nor var"),
        ({"axes": {"M": {"type": []}}}, "axes.M.type: a list is neither const nor var"),
        ({"axes": {"M": {"type": "const"}}}, "axes.M.value: missing"),
        ({"axes": {"M": {"type": "const", "value": -1}}}, "axes.M.value: must be at least 0, found -1"),
        ({"axes": 3}, "axes: expected an object, found 3"),
        ({"reference": "def ("}, "reference does not parse: line 1: invalid syntax"),
        ({"reference": "def other(): ..."}, "reference has no top-level `def run`"),
        ({"constraints": ["M =="]}, "constraint 'M ==' does not parse: invalid syntax"),
        ({"inputs": {"A": {"shape": ["Q"], "dtype": "float32"}}}, "A uses undeclared axes ['Q']"),
        ({"inputs": {"A": {"dtype": "float32"}}}, "inputs.A.shape: missing"),
        ({"inputs": {"A": {"shape": None, "dtype": "uint8"}}}, "inputs.A.dtype: 'uint8' is not a supported dtype"),
        ({"constraints": ["(" * 5000 + "1" + ")" * 5000]}, "does not parse"),
        ({"reference": "-" * 200_000 + "1"}, "reference"),
        ({"name": ""}, "name: must not be empty"),
    ],
)
def test_a_definition_that_breaks_its_schema_says_so_in_plain_words(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    put(small(tmp_path), "definitions/bad.json", gemm("other") | change)
    said = only_reason(read_dataset(tmp_path))
    assert said == reason or (reason in said and len(reason) < 20)
    assert "pydantic" not in said
    assert "Traceback" not in said


def test_one_bad_line_costs_its_neighbours_nothing(tmp_path: Path) -> None:
    small(tmp_path)
    lines = [json.dumps(row()).encode(), b'{"definition": "gemm', b"\xff\xfe\x00", b"\xff", json.dumps(row()).encode()]
    put(tmp_path, "workloads/a.jsonl", b"\n".join(lines[:2] + lines[3:]))
    dataset = read_dataset(tmp_path)
    assert [item.line for item in dataset.workloads if item.file == "workloads/a.jsonl"] == [1, 4]
    assert [(item.line, item.kind) for item in dataset.quarantined] == [(2, "workload"), (3, "workload")]
    assert "is not UTF-8" in dataset.quarantined[1].reason
    assert balanced(dataset)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"definition": "nobody"}, "definition: no file under definitions/ declares 'nobody'"),
        ({"definition": None}, "definition: expected text, found null"),
        ({"workload": {"axes": {}, "inputs": {}}}, "axes.M: missing"),
        ({"workload": {"axes": {"M": "many"}, "inputs": {}}}, "workload.axes.M: expected a whole number, found 'many'"),
        ({"workload": {"axes": {"M": 1, "Z": 1}, "inputs": {}}}, "axes.Z: not an axis of gemm_n8_k4"),
        ({"workload": {"axes": {"M": 1}, "inputs": {"D": {"type": "random"}}}}, "inputs.D: not an input of gemm_n8_k4"),
        ({"workload": {"axes": {"M": 1}, "inputs": {"A": {}}}}, "workload.inputs.A: type: missing"),
        (
            {"workload": {"axes": {"M": 1}, "inputs": {"A": {"type": "custom"}}}},
            "workload.inputs.A: type 'custom' is not one of 'random', 'scalar', 'safetensors', 'structured'",
        ),
        (
            {"workload": {"axes": {"M": 1}, "inputs": {"A": {"type": "scalar", "value": 1}}}},
            "inputs.A: a tensor of rank 2, the row gives a scalar",
        ),
        ({"solution": "s"}, "evaluation: expected an object, found null"),
        ({"evaluation": evaluation()}, "solution: missing although the row has an evaluation"),
        (
            {"workload": {"axes": {"M": 1}, "inputs": {"A": {"type": "scalar", "value": "many"}}}},
            "workload.inputs.A.value: expected a number or true or false, found 'many'",
        ),
        (
            {"solution": "s", "evaluation": evaluation(status="GOOD")},
            "evaluation.status: 'GOOD' is not a public status",
        ),
        ({"solution": "s", "evaluation": evaluation(performance=None)}, "evaluation.performance: missing"),
    ],
)
def test_a_bad_row_names_the_field_that_is_wrong(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    small(tmp_path)
    put(tmp_path, "traces/a.jsonl", row() | change, row())
    dataset = read_dataset(tmp_path)
    assert only_reason(dataset) == reason
    assert dataset.quarantined[0].line == 1
    assert len(dataset.workloads) == 2
    assert balanced(dataset)


def test_the_second_of_a_name_is_quarantined_unless_it_is_the_same(tmp_path: Path) -> None:
    small(tmp_path)
    put(tmp_path, "definitions/z_same.json", gemm())
    put(tmp_path, "definitions/z_other.json", gemm(description="another"))
    put(tmp_path, "solutions/a.json", solution())
    put(tmp_path, "solutions/b.json", solution(author="somebody"))
    dataset = read_dataset(tmp_path)
    assert dataset.accepted["definition"] == 2
    assert sorted(reasons(dataset)) == [
        "name: 'gemm_n8_k4' is taken by another definition, definitions/gemm/gemm_n8_k4.json",
        "name: 'gemm_plain' is taken by another solution, solutions/a.json",
    ]


def test_rows_of_a_quarantined_definition_hear_their_own_fault_first(tmp_path: Path) -> None:
    old = gemm()
    old["type"] = old.pop("op_type")
    put(tmp_path, "definitions/old.json", old)
    put(tmp_path, "workloads/old.jsonl", row(axes={}), row())
    found = reasons(read_dataset(tmp_path))
    assert found[0] == "op_type: missing (an older generation of the format: it called this key `type`)"
    assert found[1:] == [
        "axes.M: missing; its definition is quarantined (definitions/old.json)",
        "its definition is quarantined (definitions/old.json)",
    ]


def test_an_absent_calling_convention_keeps_the_public_default(tmp_path: Path) -> None:
    put(small(tmp_path), "solutions/a.json", solution())
    found = read_dataset(tmp_path).solutions["gemm_plain"]
    assert found.spec.destination_passing_style is True
    assert "destination_passing_style" not in found.public_json()["spec"]


def test_incumbents_are_the_baselines_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    small(tmp_path)
    put(tmp_path, "solutions/a.json", solution())
    put(tmp_path, "solutions/b.json", solution("faster", author="us"))
    assert read_dataset(tmp_path).incumbents == {"gemm_n8_k4": ("gemm_plain",)}
    put(tmp_path, "incumbents.json", {"gemm_n8_k4": ["faster", "gemm_plain"]})
    assert read_dataset(tmp_path).incumbents == {"gemm_n8_k4": ("faster", "gemm_plain")}
    put(tmp_path, "incumbents.json", {"gemm_n8_k4": ["nobody"]})
    dataset = read_dataset(tmp_path)
    assert only_reason(dataset) == "gemm_n8_k4: no solution 'nobody' for it"
    assert dataset.incumbents == {"gemm_n8_k4": ("gemm_plain",)}


def test_a_solution_without_its_definition_is_quarantined(tmp_path: Path) -> None:
    put(small(tmp_path), "solutions/a.json", solution(definition="gone"))
    dataset = read_dataset(tmp_path)
    assert only_reason(dataset) == "definition: 'gone' is declared by no file under definitions/"
    assert dataset.solutions == {}
    assert dataset.incumbents == {}
    assert balanced(dataset)

"""``fib check`` and ``fib export`` as a person and a script meet them."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from flows.cli import check
from tests.adapters.flashinfer_trace_samples import evaluation, gemm, paged, put, row, small

app = typer.Typer()
check.register(app)


def fib(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def broken(root: Path) -> Path:
    put(small(root), "workloads/b.jsonl", row(), row(axes={}), "{", row("nobody"))
    put(root, "traces/t.jsonl", row() | {"solution": "s", "evaluation": evaluation()}, row() | {"solution": "s"})
    return put(root, "definitions/bad.json", gemm("bad", reference=""))


def test_json_has_exactly_the_promised_shape_and_its_counts_sum(tmp_path: Path) -> None:
    result = fib("check", broken(tmp_path), "--json")
    report = json.loads(result.stdout)
    assert {key: value for key, value in report.items() if key != "problems"} == {
        "definitions": {"accepted": 1, "quarantined": 1},
        "workloads": {"accepted": 2, "missing_blob": 0, "quarantined": 3},
        "traces": {"accepted": 1, "quarantined": 1},
    }
    assert all(set(problem) == {"file", "line", "reason"} for problem in report["problems"])
    assert len(report["problems"]) == 5
    assert result.exit_code == 1


def test_a_clean_dataset_exits_0(tmp_path: Path) -> None:
    result = fib("check", small(tmp_path))
    assert result.exit_code == 0
    assert "Nothing is quarantined." in result.stdout


def test_missing_blobs_alone_exit_0_but_are_shown(tmp_path: Path) -> None:
    blob = {"type": "safetensors", "path": "blob/gone.safetensors", "tensor_key": "kv_indptr"}
    sizes = {"batch_size": 2, "len_indptr": 3, "num_kv_indices": 3, "num_pages": 4}
    put(tmp_path, "definitions/paged.json", paged())
    inputs = {"kv_indptr": blob, "kv_indices": blob, "sm_scale": {"type": "scalar", "value": 1.0}}
    put(tmp_path, "workloads/p.jsonl", row("paged", axes=sizes, inputs=inputs))
    result = fib("check", tmp_path)
    assert result.exit_code == 0
    assert "blob/gone.safetensors" in result.stdout
    assert json.loads(fib("check", tmp_path, "--json").stdout)["workloads"]["missing_blob"] == 1


@pytest.mark.parametrize("name", ["absent", "file.txt", "empty"])
def test_an_unusable_path_exits_2_with_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    result = fib("check", tmp_path / name, "--json")
    assert result.exit_code == 2
    assert "not a dataset folder" in result.stderr
    assert "Traceback" not in result.output
    assert not result.stdout


def test_people_see_groups_and_every_problem_on_request(tmp_path: Path) -> None:
    put(small(tmp_path), "workloads/b.jsonl", *[row(axes={"M": 1, "N": n}) for n in range(4)])
    grouped = fib("check", tmp_path)
    assert "4 x workload: axes.N: 0, but the definition fixes 8" in grouped.stdout
    assert "first at workloads/b.jsonl:1" in grouped.stdout
    listed = fib("check", tmp_path, "--all").stdout
    assert "workloads/b.jsonl:4: axes.N: 3, but the definition fixes 8" in listed


def test_logged_calls_are_checked_line_by_line(tmp_path: Path) -> None:
    put(small(tmp_path), "calls/c.jsonl", {"definition": "gemm_n8_k4", "axes": {"M": 1}}, "{", {"definition": "x"})
    result = fib("check", tmp_path, "--json")
    assert result.exit_code == 1
    assert [(item["file"], item["line"]) for item in json.loads(result.stdout)["problems"]] == [
        ("calls/c.jsonl", 2),
        ("calls/c.jsonl", 3),
    ]
    (shown,) = [line for line in fib("check", tmp_path).stdout.splitlines() if "logged calls" in line]
    assert [cell.strip() for cell in shown.split("│")[2:6]] == ["3", "1", "", "2"]


def test_markup_in_other_peoples_text_is_printed_as_it_is(tmp_path: Path) -> None:
    put(small(tmp_path), "workloads/b.jsonl", row("[bold]x[/bold][/red]"))
    assert "[bold]x[/bold][/red]" in fib("check", tmp_path).stdout


def test_export_writes_what_was_accepted_and_never_over_something(tmp_path: Path) -> None:
    broken(tmp_path / "in")
    assert fib("export", tmp_path / "in", tmp_path / "out").exit_code == 0
    assert fib("check", tmp_path / "out").exit_code == 0
    told = json.loads(fib("export", tmp_path / "in", tmp_path / "other", "--json").stdout)
    seen = json.loads(fib("check", tmp_path / "in", "--json").stdout)
    assert all(told[name] == seen[name]["accepted"] for name in ("definitions", "workloads", "traces"))
    assert told["solutions"] == len(list((tmp_path / "other/solutions").rglob("*.json")))
    assert (told["out"], told["quarantined"]) == (str(tmp_path / "other"), len(seen["problems"]))
    again = fib("export", tmp_path / "in", tmp_path / "out")
    assert again.exit_code == 2
    assert "is not an empty folder" in again.stderr

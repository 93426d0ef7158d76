"""Whatever lies in the folder: no content and no file kind makes reading raise, and the counts balance."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fib_core.adapters.flashinfer_trace import read_dataset
from fib_core.errors import ContractError
from tests.adapters.flashinfer_trace_samples import balanced, gemm, put, reasons, row, small


def test_rows_of_an_unreadable_definition_file_point_at_that_file(tmp_path: Path) -> None:
    put(tmp_path, "definitions/gemm/gemm_n8_k4.json", "{")
    put(tmp_path, "workloads/a.jsonl", row())
    assert reasons(read_dataset(tmp_path))[1] == "its definition is quarantined (definitions/gemm/gemm_n8_k4.json)"


def test_things_that_are_not_files_are_named_and_passed_over(tmp_path: Path) -> None:
    small(tmp_path)
    (tmp_path / "definitions" / "folder.json").mkdir()
    (tmp_path / "workloads" / "rows.jsonl").mkdir()
    (tmp_path / "definitions" / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "definitions" / "loop").symlink_to(tmp_path / "definitions")
    os.mkfifo(tmp_path / "definitions" / "pipe.json")
    put(tmp_path, "workloads/junk.jsonl", bytes(range(256)) * 64)
    put(tmp_path, "definitions/junk.json", bytes(range(256)) * 64)
    found = {item.file: item.reason for item in read_dataset(tmp_path).quarantined}
    assert found["definitions/folder.json"] == "is a folder, not a file"
    assert found["workloads/rows.jsonl"] == "is a folder, not a file"
    assert "No such file" in found["definitions/gone.json"]
    assert found["definitions/pipe.json"] == "is not a regular file"
    assert found["workloads/junk.jsonl"] == found["definitions/junk.json"] == "is binary, not text"
    assert len(found) == 6


@pytest.mark.parametrize("name", ["empty", "file", "absent", "nul\0byte"])
def test_an_unusable_root_is_a_contract_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(ContractError, match="not a dataset folder"):
        read_dataset(tmp_path / name)


def test_names_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    small(tmp_path)
    put(tmp_path, "workloads/\x1b[31m.jsonl", row(axes={"M": 1, "\x1b[2J\n": 1}), "{")
    bad = os.fsencode(tmp_path / "workloads") + b"/\xff.jsonl"
    Path(os.fsdecode(bad)).write_text("{")
    dataset = read_dataset(tmp_path)
    assert len(dataset.quarantined) == 3
    assert all((item.file + item.reason).isprintable() for item in dataset.quarantined)
    assert "axes.\\x1b[2J\\n: not an axis" in dataset.quarantined[0].reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from([*row(), *row()["workload"], *gemm(), "type", "value"]), inner, max_size=5),
    max_leaves=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    rows=st.lists(JSON | st.binary(max_size=40), max_size=6),
    spoiled=st.dictionaries(st.sampled_from([*gemm()]), JSON),
)
def test_no_content_makes_reading_raise_and_counts_always_balance(
    tmp_path: Path, rows: list[Any], spoiled: dict[str, Any]
) -> None:
    lines = [item if isinstance(item, bytes) else json.dumps(item).encode() for item in rows]
    small(tmp_path)
    put(tmp_path, "definitions/spoiled.json", json.dumps(gemm("spoiled") | spoiled))
    put(tmp_path, "workloads/x.jsonl", b"\n".join(lines))
    put(tmp_path, "traces/x.jsonl", row("spoiled"))
    dataset = read_dataset(tmp_path)
    assert balanced(dataset)
    assert all(item.reason and "\n" not in item.file for item in dataset.quarantined)
    assert Counter(item.file for item in dataset.workloads)["workloads/gemm/gemm_n8_k4.jsonl"] == 1

"""Captured and structural inputs: bound by content, and never allowed to read outside their cache."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fib_core.adapters.flashinfer_trace import read_dataset
from fib_core.adapters.flashinfer_trace_blobs import write_tensors
from fib_core.inspect_dataset import Dataset, check_report
from tests.adapters.flashinfer_trace_samples import only_reason, paged, put, reasons, row, small


def paged_row(path: str = "./blob/a.safetensors", **axes: int) -> dict[str, Any]:
    blob = {name: {"type": "safetensors", "path": path, "tensor_key": name} for name in ("kv_indptr", "kv_indices")}
    sizes = {"batch_size": 2, "len_indptr": 3, "num_kv_indices": 3, "num_pages": 4} | axes
    scale = {"sm_scale": {"type": "scalar", "value": 0.5}}
    return row("paged", axes=sizes, inputs=blob | scale)


def paged_dataset(root: Path, indptr: list[int], indices: list[int], dtype: str = "int32", **axes: int) -> Dataset:
    arrays = {"kv_indptr": np.array(indptr, dtype), "kv_indices": np.array(indices, dtype)}
    write_tensors(root / "blob" / "a.safetensors", arrays)
    put(root, "definitions/paged.json", paged())
    put(root, "workloads/paged.jsonl", paged_row(**axes))
    return read_dataset(root)


def test_captured_indices_bind_by_content_wherever_the_file_lies(tmp_path: Path) -> None:
    one = paged_dataset(tmp_path / "one", [0, 1, 3], [0, 3, 0])
    two = paged_dataset(tmp_path / "two", [0, 1, 3], [0, 3, 0])
    (tmp_path / "two/blob/a.safetensors").rename(tmp_path / "two/blob/b.safetensors")
    put(tmp_path / "two", "workloads/paged.jsonl", paged_row("blob/b.safetensors"))
    two = read_dataset(tmp_path / "two")
    assert not one.quarantined
    assert one.workloads[0].workload.digest == two.workloads[0].workload.digest
    other = paged_dataset(tmp_path / "three", [0, 1, 3], [0, 2, 0])
    assert one.workloads[0].workload.digest != other.workloads[0].workload.digest


@pytest.mark.parametrize(
    ("indptr", "indices", "reason"),
    [
        ([0, 1, 3], [0, 4, 0], "kv_indices: reaches 4, the highest valid value is 3 (num_pages - 1)"),
        ([0, 1, 3], [0, -1, 0], "kv_indices: reaches -1, the lowest valid value is 0"),
        ([0, 4, 3], [0, 1, 2], "kv_indptr: falls from 4 to 3 at position 2"),
        ([1, 2, 3], [0, 1, 2], "kv_indptr: starts at 1, not at 0"),
        ([0, 1, 3, 3], [0, 1, 2], "inputs.kv_indptr: the blob has shape [4], the axes say [3]"),
        (
            [0, 1, 2],
            [0, 1, 2],
            "constraint `num_kv_indices == kv_indptr[-1].item()` does not hold: num_kv_indices = 3, kv_indptr = [.. 2]",
        ),
    ],
)
def test_captured_indices_that_would_read_outside_are_quarantined(
    tmp_path: Path, indptr: list[int], indices: list[int], reason: str
) -> None:
    assert only_reason(paged_dataset(tmp_path, indptr, indices)) == reason


def test_a_blob_of_another_dtype_is_quarantined(tmp_path: Path) -> None:
    said = only_reason(paged_dataset(tmp_path, [0, 1, 3], [0, 1, 2], "int64"))
    assert "inputs.kv_indptr: the blob is int64, the definition says int32" in said


def test_a_false_constraint_on_axes_alone_is_quarantined_even_without_the_blob(tmp_path: Path) -> None:
    put(tmp_path, "definitions/paged.json", paged())
    put(tmp_path, "workloads/paged.jsonl", paged_row(), paged_row(len_indptr=9), paged_row(num_pages=0))
    dataset = read_dataset(tmp_path)
    assert [found.missing for found in dataset.workloads] == [("./blob/a.safetensors",)]
    assert "constraint `len_indptr == batch_size + 1` does not hold" in reasons(dataset)[0]
    assert reasons(dataset)[1] == "kv_indices: 3 page numbers, but num_pages = 0, so none can be valid"
    assert check_report(dataset)["workloads"] == {"accepted": 0, "missing_blob": 1, "quarantined": 2}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "its header is longer than the file"),
        (b"short", "its header is longer than the file"),
        (b"\xff" * 100, "its header is longer than the file"),
        (b"\x02\0\0\0\0\0\0\0{]", "its header is not JSON"),
        (b"\x02\0\0\0\0\0\0\0[]", "its header is not an object"),
        (b"\x02\0\0\0\0\0\0\0{}", "has no tensor 'kv_indptr'"),
    ],
)
def test_a_damaged_blob_is_quarantined_with_its_path(tmp_path: Path, body: bytes, words: str) -> None:
    put(tmp_path, "definitions/paged.json", paged())
    put(tmp_path, "workloads/paged.jsonl", paged_row())
    put(tmp_path, "blob/a.safetensors", body)
    said = only_reason(read_dataset(tmp_path))
    assert words in said
    assert "blob/a.safetensors" in said


def test_a_truncated_blob_and_a_pointer_file_are_told_apart(tmp_path: Path) -> None:
    paged_dataset(tmp_path, [0, 1, 3], [0, 1, 2])
    blob = tmp_path / "blob" / "a.safetensors"
    blob.write_bytes(blob.read_bytes()[:-4])
    assert "is truncated" in only_reason(read_dataset(tmp_path))
    blob.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    assert check_report(read_dataset(tmp_path))["workloads"]["missing_blob"] == 1


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b", "nul\0"])
def test_a_blob_path_never_leaves_the_dataset(tmp_path: Path, path: str) -> None:
    put(tmp_path, "definitions/paged.json", paged())
    put(tmp_path, "workloads/paged.jsonl", paged_row(path))
    assert "leaves the dataset folder" in only_reason(read_dataset(tmp_path))


def test_an_impossibly_long_blob_path_is_missing_not_a_crash(tmp_path: Path) -> None:
    put(tmp_path, "definitions/paged.json", paged())
    put(tmp_path, "workloads/paged.jsonl", paged_row("x" * 5000))
    assert len(read_dataset(tmp_path).workloads[0].missing) == 1


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"kv_indptr": {"type": "random"}}, "inputs.kv_indptr: offsets and page numbers cannot be random"),
        ({"kv_indptr": ["indptr", {"lengths": [1, 1]}]}, "constraint `num_kv_indices == kv_indptr[-1].item()`"),
        ({"kv_indptr": ["indptr", {"lengths": [1]}]}, "inputs.kv_indptr: 2 values for shape [3]"),
        ({"kv_indptr": ["indptr", {"lengths": "x"}]}, "inputs.kv_indptr: generator 'indptr' refuses"),
        ({"kv_indptr": ["magic", {}]}, "inputs.kv_indptr: unknown generator 'magic'"),
        ({"kv_indices": ["values", {"values": [0, 1, 9]}]}, "kv_indices: reaches 9, the highest valid value is 3"),
        ({"sm_scale": {"type": "random"}}, "inputs.sm_scale: a Python scalar needs a value, the row says random"),
    ],
)
def test_structural_inputs_are_checked_like_captured_ones(tmp_path: Path, inputs: dict[str, Any], reason: str) -> None:
    def recipe(said: Any) -> Any:
        return said if isinstance(said, dict) else {"type": "structured", "generator": said[0], "params": said[1]}

    good = {
        "kv_indptr": ["indptr", {"lengths": [1, 2]}],
        "kv_indices": ["values", {"values": [0, 3, 1]}],
        "sm_scale": {"type": "scalar", "value": 1.0},
    }
    sizes = {"batch_size": 2, "len_indptr": 3, "num_kv_indices": 3, "num_pages": 4}
    rows = [{name: recipe(item) for name, item in (good | change).items()} for change in ({}, inputs)]
    put(tmp_path, "definitions/paged.json", paged())
    put(tmp_path, "workloads/paged.jsonl", *[row("paged", axes=sizes, inputs=item) for item in rows])
    dataset = read_dataset(tmp_path)
    assert len(dataset.ready) == 1
    assert only_reason(dataset).startswith(reason)


def test_a_generator_is_never_asked_for_more_memory_than_a_check_may_take(tmp_path: Path) -> None:
    huge = {"type": "structured", "generator": "constant", "params": {"value": 0, "count": 10**15}}
    put(small(tmp_path), "workloads/a.jsonl", row(inputs={"A": huge}))
    assert not read_dataset(tmp_path).quarantined

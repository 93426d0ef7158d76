"""The real public data: everything is accounted for, nothing is lost, reasons are the right ones."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fib_core.adapters.flashinfer_trace import read_dataset
from fib_core.inspect_dataset import Dataset, check_report
from schemas.trace import PublicTrace
from tests.adapters.flashinfer_trace_samples import shared


@pytest.fixture(scope="module")
def public() -> Dataset:
    return read_dataset(shared("public-traces"))


def test_public_traces_account_for_every_definition_row_and_trace(public: Dataset) -> None:
    report = check_report(public)
    assert report["definitions"] == {"accepted": 158, "quarantined": 0}
    assert sum(report["workloads"].values()) == 830
    assert report["traces"] == {"accepted": 277, "quarantined": 0}
    assert len(report["problems"]) == report["workloads"]["quarantined"]


def test_every_quarantined_public_row_is_certainly_impossible(public: Dataset) -> None:
    reasons = Counter(re.sub(r"= \d+", "= n", item.reason) for item in public.quarantined)
    assert reasons == {
        "constraint `topk <= max_num_pages * page_size` does not hold: topk = n, max_num_pages = n, page_size = n": 59,
        "kv_indices: 2 page numbers, but num_pages = n, so none can be valid": 2,
    }


def test_rows_without_their_captured_file_wait_and_nothing_else_does(public: Dataset) -> None:
    assert all(not (public.root / path).exists() for path in public.missing_blobs)
    for item in public.workloads:
        needs = any(recipe.type == "safetensors" for recipe in item.row.workload.inputs.values())
        assert bool(item.missing) == needs


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.rglob("*.jsonl")) for line in file.open() if line.strip()]


def test_every_key_of_every_public_definition_and_row_survives(public: Dataset) -> None:
    for name, file in public.files.items():
        raw = json.loads((public.root / file).read_text())
        assert public.definitions[name.removeprefix("definition:")].public_json() == raw
    rows = rows_of(public.root / "workloads") + rows_of(public.root / "traces")
    assert [PublicTrace.model_validate(raw).public_json() for raw in rows] == rows


def test_the_captured_attention_rows_are_all_ready() -> None:
    dataset = read_dataset(shared("real-blobs"))
    assert not dataset.quarantined
    assert len(dataset.ready) == 36
    for item in dataset.ready:
        assert set(item.workload.blob_digests) == {
            name for name, recipe in item.workload.inputs.items() if recipe.type == "safetensors"
        }
    assert len({item.workload.digest for item in dataset.ready}) == 36


def test_bare_rows_of_the_sol_form_are_all_accounted_for() -> None:
    dataset = read_dataset(shared("llm-core-v1"))
    report = check_report(dataset)
    assert report["definitions"] == {"accepted": 84, "quarantined": 0}
    assert sum(report["workloads"].values()) == 1260
    assert not report["problems"]
    drawn = [item for item in dataset.workloads if any(r.type == "structured" for r in item.workload.inputs.values())]
    assert len(drawn) == 135


def test_a_trailing_comma_is_reported_at_its_line() -> None:
    (problem,) = read_dataset(shared("bad-json")).quarantined
    assert problem.line == 49
    assert problem.reason == "not JSON: trailing comma before ']' (line 49, column 3)"


def test_the_legacy_set_says_older_schema_and_that_indices_run_past_the_cache() -> None:
    dataset = read_dataset(shared("legacy-2025-08-07"))
    report = check_report(dataset)
    assert report["definitions"] == {"accepted": 0, "quarantined": 7}
    assert report["workloads"] == {"accepted": 0, "missing_blob": 0, "quarantined": 186}
    assert report["traces"] == {"accepted": 0, "quarantined": 305}
    decode = [item.reason for item in dataset.quarantined if "decode" in item.file and item.kind == "workload"]
    assert len(decode) == 10
    for reason in decode:
        reached, highest = map(int, re.findall(r"reaches (\d+), the highest valid value is (\d+)", reason)[0])
        assert reached == highest + 1
    definitions = [item.reason for item in dataset.quarantined if item.kind == "definition"]
    assert all(reason.startswith("op_type: missing (an older generation") for reason in definitions)


def test_each_dumped_definition_has_a_reason_of_its_own_file() -> None:
    dataset = read_dataset(shared("fi-trace-out"))
    assert check_report(dataset)["definitions"] == {"accepted": 0, "quarantined": 121}
    assert len({item.file for item in dataset.quarantined}) == 121
    assert all(8 < len(item.reason) < 700 and "Input should" not in item.reason for item in dataset.quarantined)

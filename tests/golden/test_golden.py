"""Old files keep loading and keep their names: a digest that moves orphans every number that cites it."""

import json
from pathlib import Path

import pytest

from fib_core.adapters.flashinfer_trace import read_dataset
from fib_core.index.lookup import check
from fib_core.index.staleness import Present
from fib_core.inspect_dataset import check_report
from fib_core.runtime.table import Table
from schemas.base import Record
from schemas.definition import Definition
from schemas.evaluation import Evaluation
from schemas.index import DispatchIndex
from schemas.snapshot import Snapshot
from schemas.solution import Solution

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("fib-v1/definition.json", Definition),
        ("fib-v1/snapshot.json", Snapshot),
        ("fib-v1/evaluation.json", Evaluation),
        ("fib-v1/index.json", DispatchIndex),
        ("fib-v1/index-with-evidence.json", DispatchIndex),
    ],
)
def test_a_record_of_version_1_keeps_its_digest(name: str, model: type[Record]) -> None:
    record = model.model_validate_json((HERE / name).read_text())
    assert record.digest == json.loads((HERE / "digests.json").read_text())[name]


@pytest.mark.parametrize("name", ["fib-v1/index.json", "fib-v1/index-with-evidence.json"])
def test_an_index_of_any_age_passes_the_publish_test_and_is_written_back_byte_for_byte(name: str) -> None:
    text = (HERE / name).read_text()
    index = DispatchIndex.model_validate_json(text)
    check(index)
    assert index.model_dump(mode="json") == json.loads(text)


def test_an_index_of_version_1_is_served_as_it_always_was() -> None:
    old = DispatchIndex.model_validate_json((HERE / "fib-v1/index.json").read_text())
    definition = Definition.model_validate_json((HERE / "fib-v1/definition.json").read_text())
    (block,) = old.definitions
    present = Present(libraries={"torch": "2.99.0"}, driver="600.1")
    table = Table(block, definition, {}, present, old.library_versions)
    assert table.find({"M": 3}, "x86-64-v3/1t").entry is block.entries[0]
    assert table.find({"M": 5}, "x86-64-v3/1t").entry is None


def test_an_index_with_evidence_serves_its_entry_and_says_why_a_key_was_kept() -> None:
    index = DispatchIndex.model_validate_json((HERE / "fib-v1/index-with-evidence.json").read_text())
    definition = Definition.model_validate_json((HERE / "fib-v1/definition.json").read_text())
    solution = Solution.model_validate_json((HERE / "fib-v1/solution.json").read_text())
    (block,) = index.definitions
    table = Table(block, definition, {solution.digest_for(definition.digest): solution})
    served, kept = table.find({"M": 9}, "x86-64-v3/1t").entry, table.find({"M": 4}, "x86-64-v3/1t").entry
    assert served is block.entries[0]
    assert served.covered_keys == ("M=16", "M=8")
    assert kept is block.kept[0]
    assert kept.reason == "gain below min_effect"


def test_a_solution_of_version_1_keeps_its_digest_under_its_definition() -> None:
    definition = Definition.model_validate_json((HERE / "fib-v1/definition.json").read_text())
    solution = Solution.model_validate_json((HERE / "fib-v1/solution.json").read_text())
    expected = json.loads((HERE / "digests.json").read_text())["fib-v1/solution.json"]
    assert solution.digest_for(definition.digest) == expected


def test_a_folder_of_the_current_public_schema_loads_whole_and_keeps_its_digests() -> None:
    dataset = read_dataset(HERE / "public-current")
    assert check_report(dataset) == {
        "definitions": {"accepted": 2, "quarantined": 0},
        "workloads": {"accepted": 3, "missing_blob": 0, "quarantined": 0},
        "traces": {"accepted": 3, "quarantined": 0},
        "problems": [],
    }
    expected = json.loads((HERE / "digests.json").read_text())["public-current workloads"]
    assert [item.workload.digest for item in dataset.workloads] == expected

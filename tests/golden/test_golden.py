"""Old files keep loading and keep their names: a digest that moves orphans every number that cites it."""

import json
from pathlib import Path

import pytest

from fib_core.adapters.flashinfer_trace import read_dataset
from fib_core.inspect_dataset import check_report
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
    ],
)
def test_a_record_of_version_1_keeps_its_digest(name: str, model: type[Record]) -> None:
    record = model.model_validate_json((HERE / name).read_text())
    assert record.digest == json.loads((HERE / "digests.json").read_text())[name]


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

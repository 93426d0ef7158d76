"""Writing: what was read comes back, what only we know becomes something everybody can load."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fib_core.adapters.flashinfer_trace import read_dataset, write_dataset
from fib_core.adapters.flashinfer_trace_blobs import BlobFolder, read_header, write_tensors
from fib_core.adapters.flashinfer_trace_export import evaluation_rows, workload_row
from fib_core.adapters.flashinfer_trace_write import export_dataset
from fib_core.errors import ContractError
from fib_core.inspect_dataset import Dataset, check_report
from schemas.definition import Definition
from schemas.evaluation import Evaluation
from schemas.solution import Solution
from schemas.trace import PublicTrace
from schemas.workload import Workload
from tests.adapters.flashinfer_trace_samples import ROOT, evaluation, gemm, paged, put, row, shared, small, solution


def content(dataset: Dataset) -> dict[str, Any]:
    """Everything that identifies a dataset, without places."""
    return {
        "definitions": {name: item.public_json() for name, item in dataset.definitions.items()},
        "solutions": {name: item.public_json() for name, item in dataset.solutions.items()},
        "rows": sorted(json.dumps(item.row.public_json(), sort_keys=True) for item in dataset.workloads),
        "digests": sorted(item.workload.digest for item in dataset.workloads),
        "traces": sorted(json.dumps(item.trace.public_json(), sort_keys=True) for item in dataset.traces),
        "incumbents": dataset.incumbents,
    }


@pytest.mark.parametrize("name", ["public-traces", "real-blobs"])
def test_what_is_written_reads_back_equal(tmp_path: Path, name: str) -> None:
    before = read_dataset(shared(name))
    export_dataset(before, tmp_path / "out")
    after = read_dataset(tmp_path / "out")
    assert content(after) == content(before)
    assert not after.quarantined
    assert [item.file for item in after.traces] == [item.file for item in before.traces]


def test_unknown_keys_survive_at_every_level(tmp_path: Path) -> None:
    strange = gemm(mine={"a": [1, None]}, mutates={}, axes=gemm()["axes"] | {"M": {"type": "var", "parent": "x"}})
    line = row(tolerance=0.5, tags=["t"], call_count=7) | {"extra": "é\u2028"}
    line["workload"]["inputs"]["A"] = {"type": "random", "distribution": "weight", "why": 1}
    put(tmp_path / "in", "definitions/a.json", strange)
    put(tmp_path / "in", "workloads/a.jsonl", json.dumps(line, ensure_ascii=False))
    put(tmp_path / "in", "solutions/a.json", solution(note="n"))
    before = read_dataset(tmp_path / "in")
    export_dataset(before, tmp_path / "out")
    after = read_dataset(tmp_path / "out")
    assert after.definitions["gemm_n8_k4"].public_json() == strange
    assert after.workloads[0].row.public_json() == line
    assert after.solutions["gemm_plain"].public_json() == solution(note="n")
    assert after.workloads[0].workload.call_count == 7
    assert after.incumbents == {"gemm_n8_k4": ("gemm_plain",)}


def test_the_layout_is_the_public_one(tmp_path: Path) -> None:
    put(small(tmp_path / "in"), "solutions/a.json", solution())
    put(tmp_path / "in", "traces/t.jsonl", row() | {"solution": "gemm_plain", "evaluation": evaluation()})
    put(tmp_path / "in", "calls/gemm/gemm_n8_k4.jsonl", {"definition": "gemm_n8_k4", "axes": {"M": 1}})
    export_dataset(read_dataset(tmp_path / "in"), tmp_path / "out")
    out = tmp_path / "out"
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()) == [
        "calls/gemm/gemm_n8_k4.jsonl",
        "definitions/gemm/gemm_n8_k4.json",
        "incumbents.json",
        "solutions/baseline/gemm/gemm_n8_k4/gemm_plain.json",
        "traces/baseline/gemm/gemm_n8_k4.jsonl",
        "workloads/gemm/gemm_n8_k4.jsonl",
    ]


def structured(generator: str, **params: Any) -> dict[str, Any]:
    return {"type": "structured", "generator": generator, "params": params}


def structured_row(definition: Definition, **facts: Any) -> PublicTrace:
    workload = Workload(
        definition_digest=definition.digest,
        axes={"batch_size": 2, "len_indptr": 3, "num_kv_indices": 3, "num_pages": 4},
        inputs={
            "q": {"type": "random", "distribution": "weight"},
            "cache": {"type": "random"},
            "kv_indptr": structured("indptr", lengths=[1, 2]),
            "kv_indices": structured("page_indices", num_pages=4, counts=[1, 2], seed=5),
            "sm_scale": {"type": "scalar", "value": 0.5},
        },
        **facts,
    )
    return workload_row(definition, workload)


def test_structured_recipes_become_captured_blobs_that_pass_our_own_checks(tmp_path: Path) -> None:
    definition = Definition.model_validate(paged())
    line = structured_row(definition, call_count=12, structure_class="flat", tags=("hot",))
    write_dataset(tmp_path, [definition], [line])
    dataset = read_dataset(tmp_path)
    assert not dataset.quarantined
    (item,) = dataset.ready
    assert item.workload.inputs["kv_indptr"].type == "safetensors"
    assert item.row.workload.inputs["kv_indptr"].model_extra["generator"] == "indptr"  # type: ignore[index]
    assert (item.workload.call_count, item.workload.structure_class, item.workload.tags) == (12, "flat", ("hot",))
    recipe: Any = item.workload.inputs["kv_indptr"]
    array = BlobFolder(tmp_path).array(recipe.path, "kv_indptr")
    assert array.dtype == np.int32
    assert array.tolist() == [0, 1, 3]
    assert recipe.path.startswith("blob/workloads/gqa_paged/paged/paged_")


def test_equal_workloads_are_written_as_equal_bytes(tmp_path: Path) -> None:
    definition = Definition.model_validate(paged())
    for name in ("a", "b"):
        write_dataset(tmp_path / name, [definition], [structured_row(definition)])
    roots = [tmp_path / "a", tmp_path / "b"]
    files = [sorted(path.relative_to(root) for path in root.rglob("*.*")) for root in roots]
    assert files[0] == files[1]
    assert all((tmp_path / "a" / path).read_bytes() == (tmp_path / "b" / path).read_bytes() for path in files[0])


@pytest.mark.parametrize("name", ["../../escape", "a/b", "..", "con\0trol", "ünï", "x" * 400])
def test_a_label_never_decides_where_a_file_lies(tmp_path: Path, name: str) -> None:
    definition = Definition.model_validate(gemm(name, op_type=name))
    line = PublicTrace.model_validate(row(name))
    write_dataset(tmp_path / "in" / "out", [definition], [line])
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["out"]
    assert list(read_dataset(tmp_path / "in" / "out").definitions) == [name]


def test_labels_that_are_spelt_alike_do_not_overwrite_each_other(tmp_path: Path) -> None:
    write_dataset(tmp_path, [Definition.model_validate(gemm(name)) for name in ("a/b", "a_b", "a:b")])
    assert len(read_dataset(tmp_path).definitions) == 3


def test_a_row_without_its_definition_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="its definition is not part of this export"):
        write_dataset(tmp_path, [], [PublicTrace.model_validate(row())])


def golden_evaluation(**changes: Any) -> Evaluation:
    body = json.loads((ROOT / "tests/golden/fib-v1/evaluation.json").read_text())
    return Evaluation.model_validate(body | changes)


def exported(*evaluations: Evaluation) -> list[PublicTrace]:
    definition = Definition.model_validate(gemm())
    workload = Workload(definition_digest=definition.digest, axes={"M": 3}, inputs={})
    job = evaluations[0].job
    solutions = {job.solution_digest: Solution.model_validate(solution())}
    name = job.workload_digest
    return evaluation_rows(definition, evaluations, {name: workload}, solutions, {name: 20.0})


def test_evaluations_are_exported_with_their_nearest_public_status(tmp_path: Path) -> None:
    rows = exported(golden_evaluation(), golden_evaluation(status="CHEATED", rule="input_mutated", samples_us=[]))
    assert [item.evaluation["status"] for item in rows if item.evaluation] == ["PASSED", "INCORRECT_NUMERICAL"]
    assert rows[0].evaluation["performance"]["latency_ms"] == pytest.approx(0.010)  # type: ignore[index]
    assert rows[0].evaluation["performance"]["speedup_factor"] == pytest.approx(2.0)  # type: ignore[index]
    put(tmp_path, "definitions/a.json", gemm())
    put(tmp_path, "traces/a.jsonl", *[item.public_json() for item in rows])
    assert check_report(read_dataset(tmp_path))["traces"] == {"accepted": 2, "quarantined": 0}


def test_a_pass_that_was_never_timed_is_left_out_rather_than_given_a_number() -> None:
    assert exported(golden_evaluation(samples_us=[])) == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    shapes=st.dictionaries(st.text("abc_", min_size=1), st.lists(st.integers(0, 4), max_size=3), min_size=1),
    dtype=st.sampled_from(["int32", "int64", "float32", "float16", "bool", "int8"]),
)
def test_tensors_come_back_as_they_were_written(tmp_path: Path, shapes: dict[str, list[int]], dtype: str) -> None:
    arrays = {name: np.arange(math.prod(shape)).reshape(shape).astype(dtype) for name, shape in shapes.items()}
    write_tensors(tmp_path / "x.safetensors", arrays)
    entries = read_header(tmp_path / "x.safetensors")
    folder = BlobFolder(tmp_path)
    for name, array in arrays.items():
        assert entries[name].shape == array.shape
        back = folder.array("x.safetensors", name)
        assert back.dtype == array.dtype
        assert np.array_equal(back, array)


def test_the_library_reads_our_blobs(tmp_path: Path) -> None:
    numpy_reader = pytest.importorskip("safetensors.numpy")
    arrays = {"b": np.arange(6, dtype="int32").reshape(2, 3), "a": np.array(True), "empty": np.zeros((0, 2), "float32")}
    write_tensors(tmp_path / "x.safetensors", arrays)
    read = numpy_reader.load_file(tmp_path / "x.safetensors")
    assert {name: (a.dtype, a.tolist()) for name, a in read.items()} == {
        name: (a.dtype, a.tolist()) for name, a in arrays.items()
    }

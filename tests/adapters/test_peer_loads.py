"""The public package itself, in an environment of its own, loads what we write."""

import json
import subprocess
from pathlib import Path

import pytest

from fib_core.adapters.flashinfer_trace import read_dataset, write_dataset
from fib_core.adapters.flashinfer_trace_write import export_dataset
from schemas.definition import Definition
from schemas.solution import Solution
from schemas.trace import PublicTrace
from tests.adapters.flashinfer_trace_samples import ROOT, evaluation, gemm, paged, put, row, shared, solution
from tests.adapters.peer import PeerUnavailable, peer_python
from tests.adapters.test_flashinfer_trace_write import structured_row

pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys
from flashinfer_bench.data import TraceSet
found = TraceSet.from_path(sys.argv[1])
rows = [trace for traces in found.workloads.values() for trace in traces]
print("RESULT" + json.dumps({
    "definitions": sorted(found.definitions),
    "workloads": len(rows),
    "uuids": sorted(trace.workload.uuid for trace in rows),
    "recipes": sorted({recipe.type for trace in rows for recipe in trace.workload.inputs.values()}),
    "solutions": sorted(s.name for group in found.solutions.values() for s in group),
    "statuses": sorted(t.evaluation.status.value for group in found.traces.values() for t in group),
}))
"""


@pytest.fixture(scope="module")
def python() -> Path:
    try:
        return peer_python(ROOT / "build")
    except (PeerUnavailable, subprocess.TimeoutExpired) as error:
        pytest.skip(f"the public package cannot be installed here: {error}")


def loaded(python: Path, root: Path) -> dict[str, object]:
    done = subprocess.run([python, "-c", PROGRAM, root], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, object] = json.loads(done.stdout.split("RESULT")[1])
    return result


def test_the_public_loader_reads_our_extensions_as_its_own_words(python: Path, tmp_path: Path) -> None:
    definition = Definition.model_validate(paged(mutates={}, numerics=None))
    plain = Definition.model_validate(gemm())
    traces = [
        row() | {"solution": "gemm_plain", "evaluation": evaluation()},
        row()
        | {"solution": "gemm_plain", "evaluation": evaluation(status="TIMEOUT", correctness=None, performance=None)},
    ]
    write_dataset(
        tmp_path,
        [definition, plain],
        [structured_row(definition, call_count=4), PublicTrace.model_validate(row(uuid=None))],
        [Solution.model_validate(solution(spec=solution()["spec"] | {"supports": ["M < 9"]}))],
        [PublicTrace.model_validate(item) for item in traces],
        {"gemm_n8_k4": ("gemm_plain",)},
    )
    found = loaded(python, tmp_path)
    assert found["definitions"] == ["gemm_n8_k4", "paged"]
    assert found["workloads"] == 2
    assert found["recipes"] == ["random", "safetensors", "scalar"]
    assert found["solutions"] == ["gemm_plain"]
    assert found["statuses"] == ["PASSED", "TIMEOUT"]


def test_the_public_loader_reads_the_public_data_after_us(python: Path, tmp_path: Path) -> None:
    dataset = read_dataset(shared("public-traces"))
    export_dataset(dataset, tmp_path)
    found = loaded(python, tmp_path)
    assert found["definitions"] == sorted(dataset.definitions)
    assert found["uuids"] == sorted(str(item.workload.uuid) for item in dataset.workloads)
    assert len(found["statuses"]) == 277  # type: ignore[arg-type]


def test_the_public_loader_reads_the_bundled_data_after_us(python: Path, tmp_path: Path) -> None:
    dataset = read_dataset(ROOT / "infra/starter/data")
    export_dataset(dataset, tmp_path)
    found = loaded(python, tmp_path)
    assert found["definitions"] == sorted(dataset.definitions)
    assert found["solutions"] == sorted(dataset.solutions)
    assert found["workloads"] == len(dataset.workloads)


def test_the_public_loader_refuses_what_we_quarantine(python: Path, tmp_path: Path) -> None:
    """The negative control: it does look at what it loads."""
    put(tmp_path, "definitions/gemm/a.json", gemm(reference="def other(): ..."))
    done = subprocess.run([python, "-c", PROGRAM, tmp_path], capture_output=True, text=True, timeout=200)
    assert done.returncode != 0

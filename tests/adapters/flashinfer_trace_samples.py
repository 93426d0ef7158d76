"""Small dataset folders for the tests of the public format, and the place of the shared real ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from fib_core.inspect_dataset import Dataset, quarantined_by_kind

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"


def shared(name: str) -> Path:
    """A real data set that lies beside the checkout; the test is skipped where it does not."""
    path = SHARED / name
    if not path.is_dir():
        pytest.skip(f"no {name} beside the checkout: the real data sets live in ../shared/data")
    return path


def gemm(name: str = "gemm_n8_k4", **changes: Any) -> dict[str, Any]:
    """A definition with one var axis."""
    return {
        "name": name,
        "op_type": "gemm",
        "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 8}, "K": {"type": "const", "value": 4}},
        "inputs": {"A": {"shape": ["M", "K"], "dtype": "float32"}, "B": {"shape": ["N", "K"], "dtype": "float32"}},
        "outputs": {"C": {"shape": ["M", "N"], "dtype": "float32"}},
        "reference": "def run(A, B):\n    return A @ B.T\n",
    } | changes


def paged(**changes: Any) -> dict[str, Any]:
    """A definition with offsets and page numbers."""
    return {
        "name": "paged",
        "op_type": "gqa_paged",
        "axes": {
            "batch_size": {"type": "var"},
            "len_indptr": {"type": "var"},
            "num_kv_indices": {"type": "var"},
            "num_pages": {"type": "var"},
            "page_size": {"type": "const", "value": 1},
        },
        "inputs": {
            "q": {"shape": ["batch_size"], "dtype": "float32"},
            "cache": {"shape": ["num_pages", "page_size"], "dtype": "float32"},
            "kv_indptr": {"shape": ["len_indptr"], "dtype": "int32"},
            "kv_indices": {"shape": ["num_kv_indices"], "dtype": "int32"},
            "sm_scale": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"out": {"shape": ["batch_size"], "dtype": "float32"}},
        "reference": "def run(q, cache, kv_indptr, kv_indices, sm_scale):\n    return q\n",
        "constraints": ["len_indptr == batch_size + 1", "num_kv_indices == kv_indptr[-1].item()"],
    } | changes


def row(definition: str = "gemm_n8_k4", **changes: Any) -> dict[str, Any]:
    """A workload row of :func:`gemm`."""
    workload = {"axes": {"M": 3}, "inputs": {"A": {"type": "random"}, "B": {"type": "random"}}, "uuid": "u-1"}
    return {"definition": definition, "workload": workload | changes, "solution": None, "evaluation": None}


def solution(name: str = "gemm_plain", **changes: Any) -> dict[str, Any]:
    """A solution of :func:`gemm`; says nothing about its calling convention."""
    return {
        "name": name,
        "definition": "gemm_n8_k4",
        "author": "baseline",
        "spec": {"language": "python", "target_hardware": ["CPU"], "entry_point": "main.py::run"},
        "sources": [{"path": "main.py", "content": "def run(A, B, C):\n    C.copy_(A @ B.T)\n"}],
    } | changes


def evaluation(**changes: Any) -> dict[str, Any]:
    """A public evaluation that passed."""
    return {
        "status": "PASSED",
        "environment": {"hardware": "NVIDIA H200", "libs": {"torch": "2.8.0"}},
        "timestamp": "2026-01-01T00:00:00",
        "log": "",
        "correctness": {"max_relative_error": 0.001, "max_absolute_error": 0.0, "extra": None},
        "performance": {"latency_ms": 0.01, "reference_latency_ms": 0.1, "speedup_factor": 10.0},
    } | changes


def put(root: Path, path: str, *values: Any) -> Path:
    """Write bytes, text, or JSON (several values: one line each)."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    if len(values) == 1 and isinstance(values[0], bytes):
        file.write_bytes(values[0])
    elif path.endswith(".json") and len(values) == 1:
        file.write_text(values[0] if isinstance(values[0], str) else json.dumps(values[0]))
    else:
        file.write_text("".join((v if isinstance(v, str) else json.dumps(v)) + "\n" for v in values))
    return root


def small(root: Path) -> Path:
    """A dataset with one definition and one row."""
    put(root, "definitions/gemm/gemm_n8_k4.json", gemm())
    return put(root, "workloads/gemm/gemm_n8_k4.jsonl", row())


def reasons(dataset: Dataset) -> list[str]:
    return [item.reason for item in dataset.quarantined]


def only_reason(dataset: Dataset) -> str:
    assert len(dataset.quarantined) == 1, dataset.quarantined
    return dataset.quarantined[0].reason


def balanced(dataset: Dataset) -> bool:
    bad = quarantined_by_kind(dataset)
    kinds = ("definition", "workload", "trace", "solution")
    return all(dataset.read.get(kind, 0) == dataset.accepted.get(kind, 0) + bad[kind] for kind in kinds)

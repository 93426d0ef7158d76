"""Writes the calibration dataset: programs whose true difference is known, to ask the decision rule what it finds.

In: ``kernels/`` beside this file. Out: ``data/`` in the public layout. Nothing here reads a clock, a random device or the
machine (the contents of inputs are drawn by the harness): same sources, same bytes. ``--check`` only says whether ``data/`` is current.

Three variants of each kernel, told apart by the const axis ``redo_percent`` (a definition's name is not part of its digest):

    aa      incumbent and candidate are the same program, one byte of comment apart: whoever is promoted is a false winner
    slow2   the incumbent does 2 % of its rows twice, the candidate none: a true gain of 2 % of the rows' time
    slow5   the same with 5 %

Only the slowed form is declared as incumbent, since the incumbent is chosen by measurement. ``M`` is a multiple of 100, so that
whole rows are redone, and no stress shape can be invented. Six sizes of ``M`` are six shape families: with the harness's default
split key some are held out. ``verify.py`` measures what the redone rows cost.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIZES = (100, 200, 400, 800, 1600, 3200)
VARIANTS = {"aa": 0, "slow2": 2, "slow5": 5}
RMSNORM = '''import torch


def run(x, weight):
    wide = torch.promote_types(x.dtype, torch.float32)
    value = x.to(wide)
    return (value * torch.rsqrt(value.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight.to(wide)).to(x.dtype)
'''
GEMM = '''def run(A, B):
    return A @ B.T
'''
README = """# Calibration data (synthetic)

Written by `infra/calibration/make.py`; do not edit by hand. Kernels, shapes and the differences between them are ours and made up for one purpose: the true
gain of every candidate in here is known (none, 2 %, 5 % of the rows), so the share of false and of missed promotions can be counted. No traffic was recorded.
"""


def tensor(*shape: str) -> dict[str, Any]:
    """A float32 tensor of named axes."""
    return {"shape": list(shape), "dtype": "float32"}


KERNELS: dict[str, dict[str, Any]] = {
    "rmsnorm_h60": {
        "op_type": "rmsnorm", "file": "rmsnorm.cc", "axes": {"hidden_size": 60}, "options": ["-DHIDDEN_SIZE=60"],
        "inputs": {"x": tensor("M", "hidden_size"), "weight": tensor("hidden_size")},
        "outputs": {"out": tensor("M", "hidden_size")}, "reference": RMSNORM,
    },
    "gemm_n16_k36": {
        "op_type": "gemm", "file": "gemm.cc", "axes": {"N": 16, "K": 36}, "options": ["-DWIDTH=16", "-DDEPTH=36"],
        "inputs": {"A": tensor("M", "K"), "B": tensor("N", "K")},
        "outputs": {"C": tensor("M", "N")}, "reference": GEMM,
    },
}  # fmt: skip


def definition(kernel: str, variant: str) -> dict[str, Any]:
    """One variant of one kernel."""
    row = KERNELS[kernel]
    consts = row["axes"] | {"redo_percent": VARIANTS[variant]}
    return {
        "name": f"{variant}_{kernel}",
        "op_type": row["op_type"],
        "tags": ["synthetic", "calibration", f"variant:{variant}"],
        "description": f"Calibration: the incumbent does {VARIANTS[variant]} % of its rows twice, the candidate none.",
        "axes": {"M": {"type": "var"}} | {name: {"type": "const", "value": size} for name, size in consts.items()},
        "constraints": ["M % 100 == 0"],
        "inputs": row["inputs"], "outputs": row["outputs"], "reference": row["reference"],
        "static": [name for name in row["inputs"] if name in ("weight", "B")],
    }  # fmt: skip


def solution(kernel: str, variant: str, author: str, redo_percent: int) -> dict[str, Any]:
    """The slowed form (baseline) or the plain one; the candidate's source differs by one comment in any case."""
    row, name = KERNELS[kernel], f"{variant}_{kernel}"
    text = (HERE / "kernels" / row["file"]).read_text(encoding="utf-8")
    return {
        "name": f"{name}__{'incumbent' if author == 'baseline' else 'candidate'}",
        "definition": name,
        "author": author,
        "description": f"Does {redo_percent} % of its rows twice.",
        "spec": {
            "language": "cpp", "target_hardware": ["cpu"], "entry_point": f"{row['file']}::run",
            "destination_passing_style": True, "binding": "tvm-ffi",
            "compile_options": [*row["options"], f"-DREDO_PERCENT={redo_percent}"],
        },
        "sources": [{"path": row["file"], "content": text + ("" if author == "baseline" else "// another copy\n")}],
    }  # fmt: skip


def write(root: Path) -> None:
    """The whole dataset under ``root``."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "README.md").write_text(README, encoding="utf-8")
    incumbents = {}
    for kernel, row in KERNELS.items():
        for variant, percent in VARIANTS.items():
            name, op_type = f"{variant}_{kernel}", row["op_type"]
            _json(root / f"definitions/{op_type}/{name}.json", definition(kernel, variant))
            for author, redo in (("baseline", percent), ("calibration", 0)):
                made = solution(kernel, variant, author, redo)
                _json(root / f"solutions/{author}/{op_type}/{name}/{made['name']}.json", made)
            incumbents[name] = [f"{name}__incumbent"]
            rows = [_workload(name, row, number, size) for number, size in enumerate(SIZES)]
            path = root / f"workloads/{op_type}/{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    _json(root / "incumbents.json", incumbents)


def _workload(name: str, row: dict[str, Any], number: int, size: int) -> str:
    inputs = {item: {"type": "random"} for item in row["inputs"]}
    workload = {"axes": {"M": size}, "inputs": inputs, "uuid": f"{name}-{number}"}
    return json.dumps({"definition": name, "workload": workload}, separators=(",", ":"))


def _json(path: Path, body: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")


def _files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if data/ is not current")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "data"
        write(fresh)
        if given.check:
            current = _files(fresh) == _files(HERE / "data")
            print("data/ is current" if current else "data/ is not current; run infra/calibration/make.py")
            return 0 if current else 1
        shutil.rmtree(HERE / "data", ignore_errors=True)
        shutil.copytree(fresh, HERE / "data")
    print(f"{len(_files(HERE / 'data'))} files in {HERE / 'data'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

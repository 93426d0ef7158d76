"""Writes the calibration datasets: programs whose true difference is known, to ask the decision rule what it finds.

In: ``kernels/`` and ``kernel_rows.py`` beside this file. Out: ``data/`` (a CPU core) and ``data_cuda/`` (a CUDA device) in the
public layout. Nothing here reads a clock, a random device or the machine (the contents of inputs are drawn by the harness): same
sources, same bytes. ``--check`` only says whether both are current.

Three variants of each kernel, told apart by the const axis ``redo_percent`` (a definition's name is not part of its digest):

    aa      incumbent and candidate are the same program, one byte of comment apart: whoever is promoted is a false winner
    slow2   the incumbent does 2 % of its work twice, the candidate none: a true gain of 2 % of the work's time
    slow5   the same with 5 %

Work is rows on a CPU, terms of every row's sum on a CUDA device. Only the slowed form is declared as incumbent, since the
incumbent is chosen by measurement. ``M`` is a multiple of a number that keeps the doubled share exact or the device evenly
loaded, and lets no stress shape be invented. Every size of ``M`` is a shape family of its own: with the harness's default split
key some are held out. ``verify.py`` measures what the doubled work costs.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from kernel_rows import READMES, SETS, VARIANTS, Kernel  # noqa: E402


def definition(name: str, kernel: Kernel, variant: str) -> dict[str, Any]:
    """One variant of one kernel."""
    consts = kernel.axes | {"redo_percent": VARIANTS[variant]}
    return {
        "name": f"{variant}_{name}",
        "op_type": kernel.op_type,
        "tags": ["synthetic", "calibration", f"variant:{variant}"],
        "description": f"Calibration: the incumbent does {VARIANTS[variant]} % of its {kernel.unit} twice, the candidate none.",
        "axes": {"M": {"type": "var"}} | {axis: {"type": "const", "value": size} for axis, size in consts.items()},
        "constraints": [kernel.constraint],
        "inputs": kernel.inputs, "outputs": kernel.outputs, "reference": kernel.reference,
        "static": [item for item in kernel.inputs if item in ("weight", "B")],
    }  # fmt: skip


def solution(name: str, kernel: Kernel, variant: str, author: str, redo_percent: int) -> dict[str, Any]:
    """The slowed form (baseline) or the plain one; the candidate's source differs by one comment in any case."""
    binding = {} if kernel.language == "triton" else {"binding": "tvm-ffi"}
    options = {} if kernel.language == "triton" else {"compile_options": [*kernel.options, f"-DREDO_PERCENT={redo_percent}"]}
    return {
        "name": f"{variant}_{name}__{'incumbent' if author == 'baseline' else 'candidate'}",
        "definition": f"{variant}_{name}",
        "author": author,
        "description": f"Does {redo_percent} % of its {kernel.unit} twice.",
        "spec": {
            "language": kernel.language, "target_hardware": [kernel.hardware], "entry_point": kernel.entry_point,
            "destination_passing_style": True, **binding, **options,
        },
        "sources": sources(kernel, author, redo_percent),
    }  # fmt: skip


def sources(kernel: Kernel, author: str, redo_percent: int) -> list[dict[str, str]]:
    """The kernel's files; a language without compile options finds its sizes in a file of their own."""
    texts = {file: (HERE / "kernels" / file).read_text(encoding="utf-8") for file in kernel.files}
    if author != "baseline":
        texts[kernel.files[0]] += f"{kernel.comment} another copy\n"
    if kernel.language == "triton":
        texts["sizes.py"] = sizes_file(kernel.axes, redo_percent)
    return [{"path": file, "content": text} for file, text in texts.items()]


def sizes_file(axes: dict[str, int], redo_percent: int) -> str:
    """Python constants in capitals, for the kernel to import."""
    return "".join(f"{name.upper()} = {size}\n" for name, size in (axes | {"redo_percent": redo_percent}).items())


def write(root: Path, dataset: str) -> None:
    """The whole dataset under ``root``."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "README.md").write_text(READMES[dataset], encoding="utf-8")
    incumbents = {}
    for kernel_name, kernel in SETS[dataset].items():
        for variant, percent in VARIANTS.items():
            name, op_type = f"{variant}_{kernel_name}", kernel.op_type
            _json(root / f"definitions/{op_type}/{name}.json", definition(kernel_name, kernel, variant))
            for author, redo in (("baseline", percent), ("calibration", 0)):
                made = solution(kernel_name, kernel, variant, author, redo)
                _json(root / f"solutions/{author}/{op_type}/{name}/{made['name']}.json", made)
            incumbents[name] = [f"{name}__incumbent"]
            rows = [_workload(name, kernel, number, size) for number, size in enumerate(kernel.sizes)]
            path = root / f"workloads/{op_type}/{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    _json(root / "incumbents.json", incumbents)


def _workload(name: str, kernel: Kernel, number: int, size: int) -> str:
    inputs = {item: {"type": "random"} for item in kernel.inputs}
    workload = {"axes": {"M": size}, "inputs": inputs, "uuid": f"{name}-{number}"}
    return json.dumps({"definition": name, "workload": workload}, separators=(",", ":"))


def _json(path: Path, body: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")


def _files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a dataset is not current")
    given = parser.parse_args()
    stale = [name for name in SETS if not renew(name, only_check=given.check)]
    return 1 if stale else 0


def renew(dataset: str, *, only_check: bool) -> bool:
    """Write the dataset, or only say whether it is current; false if it is not."""
    place = HERE / dataset
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / dataset
        write(fresh, dataset)
        current = _files(fresh) == _files(place)
        if only_check:
            print(f"{dataset}/ is current" if current else f"{dataset}/ is not current; run infra/calibration/make.py")
            return current
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(fresh, place)
    print(f"{len(_files(place))} files in {place}")
    return True


if __name__ == "__main__":
    sys.exit(main())
